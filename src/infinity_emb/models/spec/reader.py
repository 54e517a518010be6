"""Reads a checkpoint's files into a `ModelSpec`: the only place where the parts are put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.family import (
    CROSS_ENCODER,
    FILE,
    Prompts,
    read_family,
    read_prompts,
    read_similarity,
    read_truncate_dim,
)
from infinity_emb.models.spec.files import Repository
from infinity_emb.models.spec.model import Activation, ModelSpec, PoolingMode
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.modules import Chain, override_mode, plain_chain, read_chain, read_entries
from infinity_emb.models.spec.scorer import SUFFIX, Scorer, read_scorer
from infinity_emb.models.spec.transformer import Transformer, read_transformer
from infinity_emb.models.spec.weights import find_weights
from infinity_emb.types import PoolingMethod, Task

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.hub.checkpoint import Checkpoint
    from infinity_emb.models.spec.files import ConfigFile
    from infinity_emb.models.spec.modules import ModuleEntry


class _Parts(NamedTuple):
    """What is read before the task is known."""

    repository: Repository
    saved: ConfigFile
    entries: tuple[ModuleEntry, ...] | None
    transformer: Transformer
    folder: str
    weights: tuple[Path, ...]


def read_spec(
    checkpoint: Checkpoint,
    *,
    task: Task | None = None,
    pooling: PoolingMethod = PoolingMethod.AUTO,
    allow_pickle: bool = False,
) -> ModelSpec:
    """Read and check a checkpoint.

    Args:
        checkpoint: Where the files are.
        task: What it shall do; None is what it is made for.
        pooling: Pooling to use instead of the repository's own.
        allow_pickle: Accept weights that exist only as pickles.

    Raises:
        CheckpointError: A file is missing, broken or asks for something that is not supported, or the checkpoint
            cannot do the task. `param` names the file, and the field where there is one.
    """
    parts = _read_parts(Repository(checkpoint, allow_pickle))
    chosen = _choose(parts, task)
    if chosen is not Task.EMBED:
        scorer = read_scorer(parts.transformer.config, parts.saved, parts.weights, task)
        return _scorer_spec(parts, scorer)
    return _embedder_spec(parts, pooling)


def _read_parts(repository: Repository) -> _Parts:
    if not repository.checkpoint.path.is_dir():
        path = repository.checkpoint.path
        raise CheckpointError(f"{path}: there is no such folder. Give a folder with a config.json.", param=str(path))
    entries = read_entries(repository)
    folder = entries[0].folder if entries else ""
    transformer = read_transformer(repository, folder, has_modules=entries is not None)
    return _Parts(repository, repository.config(FILE), entries, transformer, folder, find_weights(repository, folder))


def _choose(parts: _Parts, task: Task | None) -> Task:
    """EMBED, or RERANK for any scorer (the number of labels decides later)."""
    classifier = parts.transformer.architecture.endswith(SUFFIX)
    family = read_family(parts.saved)
    if family == CROSS_ENCODER and parts.entries and len(parts.entries) > 1:
        kinds = ", ".join(entry.kind for entry in parts.entries)
        raise CheckpointError(
            f"{MODULES_FILE}: a cross-encoder of the modules {kinds} is not supported. Supported: Transformer alone.",
            param=MODULES_FILE,
        )
    made_for_scores = classifier and (parts.entries is None or family == CROSS_ENCODER)
    if task in {Task.RERANK, Task.CLASSIFY} and not classifier:
        name = parts.transformer.architecture or parts.transformer.model_type
        raise CheckpointError(
            f"config.json: architectures: {name} has no classification head, so it cannot do the task {task}; "
            f"that needs a *{SUFFIX} checkpoint. Serve it with the task embed, or use another checkpoint.",
            param="config.json:architectures",
        )
    if family == CROSS_ENCODER and not classifier and task is None:
        raise CheckpointError(
            f"{FILE}: model_type: a cross-encoder without a *{SUFFIX} head is not supported.",
            param=f"{FILE}:model_type",
        )
    return task or (Task.RERANK if made_for_scores else Task.EMBED)


def _scorer_spec(parts: _Parts, scorer: Scorer) -> ModelSpec:
    own = read_family(parts.saved) == CROSS_ENCODER
    prompts = read_prompts(parts.saved) if own else Prompts({}, None)
    return _spec(parts, scorer, Chain(parts.transformer.hidden_size), prompts)


def _embedder_spec(parts: _Parts, pooling: PoolingMethod) -> ModelSpec:
    hidden = parts.transformer.hidden_size
    embedder = Scorer(Task.EMBED, (), Activation.IDENTITY)
    own = parts.entries is not None and read_family(parts.saved) != CROSS_ENCODER
    if own and parts.entries:
        if parts.transformer.purpose not in {None, "feature-extraction"}:
            raise CheckpointError(
                f"transformer_task {parts.transformer.purpose!r} gives no token states to embed. "
                "Supported for an embedder: feature-extraction.",
                param="sentence_bert_config.json:transformer_task",
            )
        chain = read_chain(parts.repository, parts.entries, hidden, pooling)
        return _spec(parts, embedder, chain, read_prompts(parts.saved))
    mode = override_mode(pooling) or _plain_mode(parts.transformer)
    chain = plain_chain(hidden, mode)
    return _spec(parts, embedder, chain, Prompts({}, None))


def _plain_mode(transformer: Transformer) -> PoolingMode:
    """Mean, or the last token of a causal language model, as sentence-transformers assumes."""
    causal = transformer.config.flag("is_causal", default=True)
    return PoolingMode.LAST_TOKEN if causal and transformer.architecture.endswith("ForCausalLM") else PoolingMode.MEAN


def _spec(parts: _Parts, scorer: Scorer, chain: Chain, prompts: Prompts) -> ModelSpec:
    transformer = parts.transformer
    embeds = scorer.task is Task.EMBED
    return ModelSpec(
        checkpoint=parts.repository.checkpoint,
        folder=parts.repository.path(parts.folder),
        config=transformer.config.data,
        model_type=transformer.model_type,
        architecture=transformer.architecture,
        weights=parts.weights,
        task=scorer.task,
        modules=chain.modules,
        hidden_size=transformer.hidden_size,
        dim=chain.vector_width,
        max_length=transformer.max_length,
        do_lower_case=transformer.do_lower_case,
        padding_side=transformer.padding_side,
        truncation_side=transformer.truncation_side,
        prompts=prompts.texts,
        default_prompt_name=prompts.default_name,
        similarity_fn=read_similarity(parts.saved) if embeds else "cosine",
        truncate_dim=read_truncate_dim(parts.saved, chain.vector_width) if embeds else None,
        labels=scorer.labels,
        activation=scorer.activation,
        notes=(*transformer.notes, *chain.notes),
    )
