"""Reads sparse encoders: masked language models whose logits weigh the vocabulary (SPLADE), and coded dense vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.codes import has_codes, read_codes
from infinity_emb.models.spec.family import SPARSE_ENCODER, Prompts, read_prompts
from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.model import Activation
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.parts import make_spec
from infinity_emb.models.spec.router import check_same_tokenizer
from infinity_emb.models.spec.scorer import Scorer
from infinity_emb.models.spec.weights import SINGLE, check_tensor, find_module_weights
from infinity_emb.types import Task

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.codes import CodesSpec
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.parts import Parts

MASKED_SUFFIX = "ForMaskedLM"


@dataclass(frozen=True, slots=True)
class SparseSpec:
    """`w[word] = pool over tokens of log(1 + relu(logit[token, word]))`, Formal et al. 2021.

    Attributes:
        vocabulary: Words (or codes), the length of a vector.
        total: Sum over the tokens instead of the largest.
        log_twice: `log(1 + log(1 + relu(x)))`, Geng et al. 2025.
        query_weights: File whose tensor `weight` holds what each word of a query weighs, without computing anything;
            None where queries go through the model too.
        most: Largest weights that are kept of a vector, None for all.
        codes: How a dense vector is coded, which is done instead of all this; else None.
    """

    vocabulary: int
    total: bool = False
    log_twice: bool = False
    query_weights: Path | None = None
    most: int | None = None
    codes: CodesSpec | None = None


def is_sparse(parts: Parts, task: Task | None) -> bool:
    """Whether it is a sparse encoder: by its own word, by its name, or because it was asked for."""
    if parts.family == SPARSE_ENCODER or task is Task.SPARSE:
        return True
    plain = task is None and parts.entries is None and parts.transformer.architecture.endswith(MASKED_SUFFIX)
    return plain and "splade" in parts.repository.checkpoint.model_id.lower()


def read_sparse(parts: Parts, task: Task | None) -> ModelSpec:
    """Read a sparse encoder.

    Raises:
        CheckpointError: Other modules, no masked language model where one is needed, or another task.
    """
    if task not in {None, Task.SPARSE}:
        raise CheckpointError(
            f"config_sentence_transformers.json: model_type: a {SPARSE_ENCODER} cannot do the task {task}. "
            "Serve it without --task, or with the task sparse.",
            param="config_sentence_transformers.json:model_type",
        )
    if has_codes(parts):
        spec, codes = read_codes(parts)
        return replace(spec, sparse=SparseSpec(spec.dim, codes=codes), similarity_fn="dot")
    transformer = parts.transformer
    if not transformer.architecture.endswith(MASKED_SUFFIX):
        raise transformer.config.error(
            "architectures",
            f"{transformer.architecture or 'nothing'!r} is no masked language model, which sparse vectors need "
            f"(*{MASKED_SUFFIX}).",
        )
    vocabulary = transformer.config.needed_whole("vocab_size")
    sparse = SparseSpec(vocabulary) if parts.entries is None else _read_pooling(parts, vocabulary)
    own = parts.family == SPARSE_ENCODER
    prompts = read_prompts(parts.saved) if own else Prompts({}, None)
    scorer = Scorer(Task.SPARSE, (), Activation.IDENTITY)
    spec = make_spec(parts, scorer, Chain(transformer.hidden_size, vocabulary), prompts)
    return replace(spec, sparse=sparse, similarity_fn="dot")


def _read_pooling(parts: Parts, vocabulary: int) -> SparseSpec:
    static = _read_static(parts, vocabulary)
    kinds = [entry.kind for entry in parts.entries or () if entry.kind != "SparseStaticEmbedding"]
    if kinds not in (["MLMTransformer", "SpladePooling"], ["Transformer", "SpladePooling"]) or parts.entries is None:
        raise CheckpointError(
            f"{MODULES_FILE}: a sparse encoder of the modules {', '.join(kinds)} is not supported. "
            "Supported: Transformer or MLMTransformer, then SpladePooling; or an embedder, then SparseAutoEncoder.",
            param=MODULES_FILE,
        )
    if kinds[0] == "Transformer" and parts.transformer.purpose != "fill-mask":
        raise CheckpointError(
            f"transformer_task {parts.transformer.purpose!r} gives no logits of a masked language model. "
            "Supported for a sparse encoder: fill-mask.",
            param="sentence_bert_config.json:transformer_task",
        )
    config = parts.repository.config(join(parts.entries[1].folder, "config.json"), required=True)
    for field in ("embedding_dimension", "word_embedding_dimension"):
        width = config.whole(field)
        if width is not None and width != vocabulary:
            raise config.error(field, f"{width} is not the size of the vocabulary, {vocabulary} (config.json).")
    return SparseSpec(
        vocabulary,
        total=config.choice("pooling_strategy", {"max": False, "sum": True}, default=False),
        log_twice=config.choice("activation_function", {"relu": False, "log1p_relu": True}, default=False),
        query_weights=static,
        most=parts.saved.whole("max_active_dims"),
    )


def _read_static(parts: Parts, vocabulary: int) -> Path | None:
    """The table of an inference-free query side, if there is one."""
    entry = next((one for one in parts.entries or () if one.kind == "SparseStaticEmbedding"), None)
    if entry is None:
        return None
    config = parts.repository.config(join(entry.folder, "config.json"))
    if config.data.get("path"):
        raise config.error("path", "weights from a JSON file are not supported. Save the model again with its weights.")
    weights = find_module_weights(parts.repository, entry.folder)
    check_tensor(weights, join(entry.folder, SINGLE), "weight", (vocabulary,))
    check_same_tokenizer(parts.repository, entry.folder, parts.folder)
    return weights
