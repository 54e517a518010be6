"""Loads a checkpoint as a torch module through transformers, for the torch backend and the export to ONNX."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from infinity_emb import extras
from infinity_emb.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infinity_emb.models.spec.model import ModelSpec

# Of an encoder-decoder only the encoder makes embeddings.
_ENCODERS = {
    "t5": "T5EncoderModel",
    "mt5": "MT5EncoderModel",
    "umt5": "UMT5EncoderModel",
    "longt5": "LongT5EncoderModel",
}
# Everything that transformers is known to raise for a folder it cannot load.
_FOREIGN_ERRORS = (OSError, ValueError, KeyError, AttributeError, ImportError, RuntimeError, TypeError)


def load_module(spec: ModelSpec, purpose: str, *, trust_remote_code: bool = False, **settings: Any) -> Any:
    """The transformer of a checkpoint in evaluation mode: token states for embedders, logits for scorers.

    Args:
        spec: The checkpoint; pickles are read only if its specification lists them, which it does when allowed.
        purpose: What needs torch, for the message if it is missing.
        trust_remote_code: Run Python code of the repository.
        settings: Passed on to `from_pretrained`, such as `dtype` and `attn_implementation`.

    Returns:
        A `transformers.PreTrainedModel`.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        CheckpointError: transformers cannot load it, or weights are missing from it.
    """
    extras.require("torch", "torch", purpose)
    transformers = extras.require("transformers", "torch", purpose)
    if not spec.weights:
        raise CheckpointError(
            f"{spec.checkpoint.model_id} holds an ONNX file but no weights that torch could read. "
            "Use --engine openvino or --engine onnxruntime.",
            param="model.safetensors",
        )
    auto_class = getattr(transformers, _class_name(spec))
    pickled = any(file.suffix != ".safetensors" for file in spec.weights)
    with _quiet(transformers):
        try:
            module, loading = auto_class.from_pretrained(
                str(spec.folder),
                local_files_only=True,
                use_safetensors=not pickled,
                trust_remote_code=trust_remote_code,
                output_loading_info=True,
                **settings,
            )
        except _FOREIGN_ERRORS as error:
            raise _load_error(spec, error) from error
    _check_complete(spec, loading)
    return module.eval()


def _class_name(spec: ModelSpec) -> str:
    if spec.judge is not None:
        return "AutoModelForCausalLM"
    if spec.weighs_words:
        return "AutoModelForMaskedLM"
    if spec.classifies:
        return "AutoModelForSequenceClassification"
    return _ENCODERS.get(spec.model_type, "AutoModel")


def _check_complete(spec: ModelSpec, loading: dict[str, Any]) -> None:
    """Gaps are filled with random numbers; only a pooler that nobody asks may be one."""
    missing = [name for name in loading["missing_keys"] if spec.classifies or "pooler" not in name]
    wrong = [*missing, *(str(entry) for entry in loading.get("mismatched_keys") or ())]
    if wrong:
        raise CheckpointError(
            f"The weights of {spec.checkpoint.model_id} do not fit its config.json: {len(wrong)} tensors are missing "
            f"or have another shape, such as {', '.join(sorted(wrong)[:3])}. Download the repository again.",
            param=spec.weights[0].name,
        )


def _load_error(spec: ModelSpec, error: Exception) -> CheckpointError:
    text = str(error).strip()
    first_line = text.splitlines()[0] if text else type(error).__name__
    advice = "Check the repository, or upgrade transformers if the architecture is newer than it."
    if "trust_remote_code" in text:
        advice = "If you trust the Python code in that repository, start with --trust-remote-code."
    return CheckpointError(
        f"transformers cannot load {spec.checkpoint.model_id} (model_type {spec.model_type!r}): {first_line} {advice}",
        param="config.json: model_type",
    )


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bar and no report on random weights: both are ours to tell."""
    logging = transformers.utils.logging
    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
