"""Reads config_sentence_transformers.json: family, prompts, similarity, default dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import CheckpointError
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import ConfigFile

FILE = "config_sentence_transformers.json"
EMBEDDER, CROSS_ENCODER = "SentenceTransformer", "CrossEncoder"
SPARSE_ENCODER, MULTI_VECTOR_ENCODER = "SparseEncoder", "MultiVectorEncoder"
_FAMILIES = {name: name for name in (EMBEDDER, CROSS_ENCODER, SPARSE_ENCODER, MULTI_VECTOR_ENCODER)}
_FAMILIES["ColBERT"] = MULTI_VECTOR_ENCODER  # as PyLate wrote it
# sentence-transformers offers these two names, empty, for every embedder.
ALWAYS_PROMPTS = ("query", "document")
_SIMILARITIES = {
    "cosine": "cosine",
    "dot": "dot",
    "dot_score": "dot",
    "euclidean": "euclidean",
    "manhattan": "manhattan",
}


class Prompts(NamedTuple):
    """Prompts of a repository.

    Attributes:
        texts: Name → text.
        default_name: Used when none is asked for.
    """

    texts: dict[str, str]
    default_name: str | None


def read_family(saved: ConfigFile) -> str:
    """One of the four families of sentence-transformers; an embedder if nothing is said.

    Raises:
        CheckpointError: Another one.
    """
    return saved.choice("model_type", _FAMILIES, EMBEDDER)


def check_embeds(saved: ConfigFile, task: Task | None, what: str, file: str) -> None:
    """Raise unless an embedder is wanted of what gives vectors of texts alone; `file` says that it is there.

    Raises:
        CheckpointError: Another family or task.
    """
    family = read_family(saved)
    if family != EMBEDDER or task not in {None, Task.EMBED}:
        raise CheckpointError(
            f"{file}: a repository of {what} gives vectors of texts and nothing else; it cannot be a {family} or do "
            f"the task {task or Task.EMBED}. Serve it without --task.",
            param=file,
        )


def read_prompts(saved: ConfigFile) -> Prompts:
    """Prompts and the default one; a null text is an empty one.

    Raises:
        CheckpointError: A text that is no string, or a default that is not among them.
    """
    texts: dict[str, str] = {}
    for name, text in saved.section("prompts").data.items():
        if text is not None and not isinstance(text, str):
            raise saved.error(f"prompts.{name}", f"{text!r} is not a string.")
        texts[name] = text or ""
    default = saved.text("default_prompt_name")
    if default is not None and default not in texts and default not in ALWAYS_PROMPTS:
        known = ", ".join(texts) or "none"
        raise saved.error("default_prompt_name", f"{default!r} is not among the prompts ({known}).")
    return Prompts(texts, default if default in texts else None)


def read_similarity(saved: ConfigFile) -> str:
    """cosine, dot, euclidean or manhattan; cosine if nothing is said."""
    return saved.choice("similarity_fn_name", _SIMILARITIES, "cosine")


def read_truncate_dim(saved: ConfigFile, dim: int) -> int | None:
    """Dimensions kept by default.

    Raises:
        CheckpointError: More than the model has.
    """
    kept = saved.whole("truncate_dim")
    if kept is not None and kept > dim:
        raise saved.error("truncate_dim", f"{kept} is more than the model's {dim} dimensions.")
    return kept
