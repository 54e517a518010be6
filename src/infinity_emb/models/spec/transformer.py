"""Reads what concerns the transformer itself: its config.json, module options, and tokenizer settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.models.spec.files import ConfigFile, join, missing
from infinity_emb.models.spec.lengths import read_max_length
from infinity_emb.models.spec.towers import JOINT_TYPES, text_config

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import Repository

MODULE_FILES = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
_WIDTHS = ("hidden_size", "dim", "d_model", "n_embd")
_SIDES = {"left": "left", "right": "right"}
_OUTPUTS = {
    "feature-extraction": "last_hidden_state",
    "sequence-classification": "logits",
    "text-generation": "logits",
    "fill-mask": "logits",
}
# Files that stand for tokenizer.json in the first repositories of a family.
_OLDER_TOKENIZERS = {"clip": ("vocab.json", "merges.txt")}
_CHANGES_INPUT = ("query_expansion", "query_length", "document_length")


class Transformer(NamedTuple):
    """The first module.

    Attributes:
        config: config.json.
        model_type: Its `model_type`.
        architecture: First entry of its `architectures`, or "".
        hidden_size: Width of a token state.
        max_length: Longest input in tokens.
        do_lower_case: Lower-case the text before the tokenizer.
        padding_side: The tokenizer's.
        truncation_side: The tokenizer's.
        purpose: `transformer_task` of the module, or None.
        options: The module's own option file; empty if there is none.
        notes: For the start-up block.
    """

    config: ConfigFile
    model_type: str
    architecture: str
    hidden_size: int
    max_length: int
    do_lower_case: bool
    padding_side: str
    truncation_side: str
    purpose: str | None
    options: ConfigFile
    notes: tuple[str, ...]


def read_transformer(repository: Repository, folder: str, *, has_modules: bool, late: bool = False) -> Transformer:
    """Read config.json, the module's options (only if there is a modules.json) and tokenizer_config.json.

    Args:
        repository: Where the files are.
        folder: The module's folder.
        has_modules: Whether there is a modules.json.
        late: A late interaction model, whose queries may be filled up and which has a length for each kind of input.

    Raises:
        CheckpointError: A file is missing or broken, or an option is not supported.
    """
    config = repository.config(join(folder, "config.json"), required=True)
    model_type = _model_type(config)
    joint = model_type in JOINT_TYPES
    options = ConfigFile(MODULE_FILES[0], {}, exists=False)
    if has_modules:
        options = _module_options(repository, folder, () if late else _CHANGES_INPUT, joint=joint)
    tokenizer = repository.config(join(folder, "tokenizer_config.json"))
    if not _has_tokenizer(repository, folder, model_type):
        raise missing(
            join(folder, "tokenizer.json"),
            "It is the tokenizer in the form this server reads; transformers writes it with "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)",
        )
    text = ConfigFile(config.name, text_config(config.data))
    length = read_max_length(text, tokenizer, _stated_length(options))
    names = config.data.get("architectures") or [""]
    if not isinstance(names, list) or not isinstance(names[0], str):
        raise config.error("architectures", f"{names!r} is not a list of names.")
    return Transformer(
        config=config,
        model_type=model_type,
        architecture=names[0],
        hidden_size=_hidden_size(text),
        max_length=length.tokens,
        do_lower_case=options.flag("do_lower_case", default=False),
        padding_side=tokenizer.choice("padding_side", _SIDES, "right"),
        truncation_side=tokenizer.choice("truncation_side", _SIDES, "right"),
        purpose=options.choice("transformer_task", {name: name for name in _OUTPUTS}, None),
        options=options,
        notes=length.notes,
    )


def _has_tokenizer(repository: Repository, folder: str, model_type: str) -> bool:
    older = _OLDER_TOKENIZERS.get(model_type, ())
    files = [repository.path(folder, name).is_file() for name in older]
    return repository.path(folder, "tokenizer.json").is_file() or (bool(files) and all(files))


def _module_options(repository: Repository, folder: str, refused: tuple[str, ...], *, joint: bool) -> ConfigFile:
    """The first of the module's option files that exists and is not empty."""
    for name in MODULE_FILES:
        options = repository.config(join(folder, name))
        if options.data:
            _check_options(options, refused, joint=joint)
            return options
    return ConfigFile(join(folder, MODULE_FILES[0]), {}, exists=False)


def _check_options(options: ConfigFile, refused: tuple[str, ...], *, joint: bool) -> None:
    """Refuse what would change the result and is not computed here."""
    for field in (*refused, "processing_kwargs"):
        if options.data.get(field):
            raise options.error(field, "this option changes what the model reads and is not supported. Remove it.")
    modalities = options.section("modality_config")
    if modalities.exists and "message" in modalities.data:
        raise options.error("modality_config.message", "text through a chat template is not supported.")
    if modalities.exists and "text" not in modalities.data:
        raise options.error("modality_config", "the model reads no text. Supported: text.")
    if joint:
        _check_joint(options, modalities)
        return
    text = modalities.section("text")
    expected = _OUTPUTS[options.text("transformer_task") or "feature-extraction"] if text.exists else ""
    if text.exists and (text.data.get("method"), text.data.get("method_output_name")) != ("forward", expected):
        raise options.error("modality_config.text", f"{text.data!r} is not supported. Supported: forward, {expected}.")


def _check_joint(options: ConfigFile, modalities: ConfigFile) -> None:
    """A model of texts and media gives the vectors of its own projections; the reference names that in two ways."""
    for name, row in modalities.data.items():
        method, output = (row.get("method"), row.get("method_output_name")) if isinstance(row, dict) else (None, None)
        if method != f"get_{name}_features" or output not in {None, "pooler_output"}:
            raise options.error(
                f"modality_config.{name}", f"{row!r} is not supported. Supported: get_{name}_features, pooler_output."
            )


def _stated_length(options: ConfigFile) -> int | None:
    """`model_max_length` of the tokenizer arguments wins over `max_seq_length`."""
    for field in ("processor_kwargs", "tokenizer_args"):
        length = options.section(field).whole("model_max_length")
        if length is not None:
            return length
    return options.whole("max_seq_length")


def _model_type(config: ConfigFile) -> str:
    name = config.text("model_type")
    if not name:
        raise config.error("model_type", "the field is missing; it names the architecture, such as 'bert'. Add it.")
    return name


def _hidden_size(config: ConfigFile) -> int:
    for source in (config, config.section("text_config")):
        for field in _WIDTHS:
            width = source.whole(field)
            if width is not None:
                return width
    raise config.error("hidden_size", f"none of {', '.join(_WIDTHS)} is there. Add hidden_size.")
