"""The parts of a checkpoint that are read before its kind is known, and how they become a `ModelSpec`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.family import (
    FILE,
    MULTI_VECTOR_ENCODER,
    Prompts,
    read_family,
    read_similarity,
    read_truncate_dim,
)
from infinity_emb.models.spec.model import ModelSpec
from infinity_emb.models.spec.modules import read_entries
from infinity_emb.models.spec.transformer import Transformer, read_transformer
from infinity_emb.models.spec.weights import find_weights
from infinity_emb.types import Task

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.chain import Chain
    from infinity_emb.models.spec.files import ConfigFile, Repository
    from infinity_emb.models.spec.modules import ModuleEntry
    from infinity_emb.models.spec.scorer import Scorer


class Parts(NamedTuple):
    """What is read before the kind is known.

    Attributes:
        repository: Where the files are.
        saved: config_sentence_transformers.json.
        family: What that file says the repository is.
        entries: Rows of modules.json, None if there is none.
        transformer: The first module.
        folder: Its folder.
        weights: Its weights.
    """

    repository: Repository
    saved: ConfigFile
    family: str
    entries: tuple[ModuleEntry, ...] | None
    transformer: Transformer
    folder: str
    weights: tuple[Path, ...]


def read_parts(repository: Repository) -> Parts:
    """Open the files that every checkpoint has.

    Raises:
        CheckpointError: One is missing or broken.
    """
    if not repository.checkpoint.path.is_dir():
        path = repository.checkpoint.path
        raise CheckpointError(f"{path}: there is no such folder. Give a folder with a config.json.", param=str(path))
    entries = read_entries(repository)
    folder = entries[0].folder if entries else ""
    saved = repository.config(FILE)
    family = read_family(saved)
    transformer = read_transformer(
        repository, folder, has_modules=entries is not None, late=family == MULTI_VECTOR_ENCODER
    )
    return Parts(repository, saved, family, entries, transformer, folder, find_weights(repository, folder))


def make_spec(parts: Parts, scorer: Scorer, chain: Chain, prompts: Prompts) -> ModelSpec:
    """Put the parts together."""
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
