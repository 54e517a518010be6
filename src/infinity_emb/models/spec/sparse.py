"""Reads SPLADE models: a masked language model whose logits become one weight for each word of the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.family import SPARSE_ENCODER, Prompts, read_prompts
from infinity_emb.models.spec.model import Activation
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.modules import Chain
from infinity_emb.models.spec.parts import make_spec
from infinity_emb.models.spec.scorer import Scorer
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.parts import Parts

MASKED_SUFFIX = "ForMaskedLM"


@dataclass(frozen=True, slots=True)
class SparseSpec:
    """`w[word] = pool over tokens of log(1 + relu(logit[token, word]))`, Formal et al. 2021.

    Attributes:
        vocabulary: Words, the length of a vector.
        total: Sum over the tokens instead of the largest.
        log_twice: `log(1 + log(1 + relu(x)))`, Geng et al. 2025.
    """

    vocabulary: int
    total: bool = False
    log_twice: bool = False


def is_sparse(parts: Parts, task: Task | None) -> bool:
    """Whether it is a sparse encoder: by its own word, by its name, or because it was asked for."""
    if parts.family == SPARSE_ENCODER or task is Task.SPARSE:
        return True
    plain = task is None and parts.entries is None and parts.transformer.architecture.endswith(MASKED_SUFFIX)
    return plain and "splade" in parts.repository.checkpoint.model_id.lower()


def read_sparse(parts: Parts, task: Task | None) -> ModelSpec:
    """Read a SPLADE model.

    Raises:
        CheckpointError: Other modules, no masked language model, or another task.
    """
    if task not in {None, Task.SPARSE}:
        raise CheckpointError(
            f"config_sentence_transformers.json: model_type: a {SPARSE_ENCODER} cannot do the task {task}. "
            "Serve it without --task, or with the task sparse.",
            param="config_sentence_transformers.json:model_type",
        )
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
    kinds = [entry.kind for entry in parts.entries or ()]
    if kinds not in (["MLMTransformer", "SpladePooling"], ["Transformer", "SpladePooling"]) or parts.entries is None:
        raise CheckpointError(
            f"{MODULES_FILE}: a sparse encoder of the modules {', '.join(kinds)} is not supported. "
            "Supported: Transformer or MLMTransformer, then SpladePooling.",
            param=MODULES_FILE,
        )
    if kinds[0] == "Transformer" and parts.transformer.purpose != "fill-mask":
        raise CheckpointError(
            f"transformer_task {parts.transformer.purpose!r} gives no logits of a masked language model. "
            "Supported for a sparse encoder: fill-mask.",
            param="sentence_bert_config.json:transformer_task",
        )
    config = parts.repository.config(f"{parts.entries[1].folder}/config.json", required=True)
    for field in ("embedding_dimension", "word_embedding_dimension"):
        width = config.whole(field)
        if width is not None and width != vocabulary:
            raise config.error(field, f"{width} is not the size of the vocabulary, {vocabulary} (config.json).")
    if parts.saved.whole("max_active_dims") is not None:
        raise parts.saved.error("max_active_dims", "keeping only the largest weights is not supported. Remove it.")
    return SparseSpec(
        vocabulary,
        total=config.choice("pooling_strategy", {"max": False, "sum": True}, default=False),
        log_twice=config.choice("activation_function", {"relu": False, "log1p_relu": True}, default=False),
    )
