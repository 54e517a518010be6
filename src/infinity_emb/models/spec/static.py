"""Reads static embeddings, which are a table of token vectors: those of sentence-transformers and of model2vec.

Each repository is read as its own library reads it. With a modules.json that is sentence-transformers: every token
counts, and nothing is cut unless tokenizer.json says so. Without one it is model2vec: unknown tokens are left out, and
texts are cut at the `max_length` of config.json, 512 tokens if it gives none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.family import EMBEDDER, FILE, Prompts, check_embeds, read_prompts
from infinity_emb.models.spec.files import ConfigFile, join
from infinity_emb.models.spec.model import Activation, NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.modules import STATIC, extend_chain, override_mode, read_entries
from infinity_emb.models.spec.parts import Parts, make_spec
from infinity_emb.models.spec.scorer import Scorer
from infinity_emb.models.spec.transformer import Transformer
from infinity_emb.models.spec.vocabulary import open_tokenizer
from infinity_emb.models.spec.weights import all_tensors, find_weights
from infinity_emb.types import PoolingMethod, Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from infinity_emb.models.spec.files import Repository
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.modules import ModuleEntry

MODEL_TYPE = "static"  # the name under which graphs are built
MODEL2VEC = "model2vec"
# The libraries read texts of any length. What is beyond this would take gigabytes in one row, and is cut.
LONGEST_TOKENS = 65_536
DEFAULT_MODEL2VEC_TOKENS = 512


@dataclass(frozen=True, slots=True)
class StaticSpec:
    """How texts become rows of the table.

    Attributes:
        dropped_id: Token that is left out, or None.
        characters: Characters of a text that are looked at, or None for all.
    """

    dropped_id: int | None = None
    characters: int | None = None


class _Reading(NamedTuple):
    """What the tokenizer adds to the specification."""

    tokens: int
    side: str
    static: StaticSpec
    notes: tuple[str, ...]


def read_static(repository: Repository, task: Task | None, pooling: PoolingMethod) -> ModelSpec | None:
    """The specification of static embeddings; None if the repository holds something else.

    Raises:
        CheckpointError: A file is missing or broken, or something else than vectors is asked for.
    """
    if not repository.checkpoint.path.is_dir():
        return None
    entries = read_entries(repository)
    config = repository.config("config.json")
    if entries is None and config.data.get("model_type") != MODEL2VEC:
        return None
    if entries is not None and entries[0].kind != STATIC:
        return None
    saved = repository.config(FILE)
    check_embeds(saved, task, "static embeddings", MODULES_FILE)
    if override_mode(pooling) not in {None, PoolingMode.MEAN}:
        raise CheckpointError(
            f"--pooling-method {pooling} does not apply to static embeddings, whose vector is the mean of rows. "
            "Leave it out.",
            param="pooling_method",
        )
    folder = entries[0].folder if entries else ""
    weights = find_weights(repository, folder)
    rows, dim = _table(weights, join(folder, "model.safetensors"))
    reading = _read_as_model2vec(repository, config) if entries is None else _read_tokenizer(repository, folder)
    transformer = Transformer(
        config=ConfigFile("config.json", {"model_type": MODEL_TYPE, "hidden_size": dim, "vocab_size": rows}),
        model_type=MODEL_TYPE,
        architecture=STATIC,
        hidden_size=dim,
        max_length=reading.tokens,
        do_lower_case=False,
        padding_side="right",
        truncation_side=reading.side,
        purpose=None,
        options=ConfigFile("", {}, exists=False),
        notes=reading.notes,
    )
    parts = Parts(repository, saved, EMBEDDER, entries, transformer, folder, weights)
    prompts = Prompts({}, None) if entries is None else read_prompts(saved)
    scorer = Scorer(Task.EMBED, (), Activation.IDENTITY)
    spec = make_spec(parts, scorer, _chain(repository, config, entries, dim), prompts)
    return replace(spec, static=reading.static)


def _chain(repository: Repository, config: ConfigFile, entries: Sequence[ModuleEntry] | None, dim: int) -> Chain:
    """The mean of the rows, and what follows it."""
    chain = Chain(dim, dim, (PoolingSpec((PoolingMode.MEAN,)),))
    if entries is None:
        normalized = config.flag("normalize", default=False)
        return replace(chain, modules=(*chain.modules, NormalizeSpec())) if normalized else chain
    for entry in entries[1:]:
        chain = extend_chain(repository, chain, entry, PoolingMethod.AUTO)
    return chain


def _table(weights: tuple[Path, ...], shown: str) -> tuple[int, int]:
    """Token ids that the table knows, and its width.

    Raises:
        CheckpointError: No table, or tensors that do not fit each other.
    """
    tensors = all_tensors(weights)
    table = tensors.get("embedding.weight") or tensors.get("embeddings")
    if table is None or len(table.shape) != 2:
        raise CheckpointError(
            f"{shown}: it holds no table of vectors ('embedding.weight' or 'embeddings' with two axes), but "
            f"{', '.join(tensors) or 'nothing that can be read'}. Fetch it again, or convert pickled weights.",
            param=shown,
        )
    rows, dim = table.shape
    if "embedding.weight" in tensors:
        return rows, dim
    known = tensors["mapping"].shape[0] if "mapping" in tensors else rows
    if "weights" in tensors and tensors["weights"].shape != (known,):
        raise CheckpointError(
            f"{shown}: 'weights' has shape {list(tensors['weights'].shape)}, but there are {known} tokens.", param=shown
        )
    return known, dim


def _read_tokenizer(repository: Repository, folder: str) -> _Reading:
    """As StaticEmbedding reads: with the limit stored in tokenizer.json, if any."""
    stored = open_tokenizer(repository, folder).truncation or {}
    limit, side = stored.get("max_length"), str(stored.get("direction") or "right").lower()
    if limit is None:
        return _Reading(LONGEST_TOKENS, side, StaticSpec(), (_long_note(),))
    return _Reading(min(int(limit), LONGEST_TOKENS), side, StaticSpec(), ())


def _read_as_model2vec(repository: Repository, config: ConfigFile) -> _Reading:
    """As model2vec reads: cut by characters, then by tokens, then without the unknown token."""
    tokenizer = open_tokenizer(repository, "")
    limit = DEFAULT_MODEL2VEC_TOKENS if "max_length" not in config.data else config.whole("max_length")
    model = tokenizer.model
    if hasattr(model, "unk_token"):
        dropped = None if model.unk_token is None else tokenizer.token_to_id(model.unk_token)
    else:
        dropped = repository.config("tokenizer.json").section("model").whole("unk_id", least=0)
    if limit is None:
        return _Reading(LONGEST_TOKENS, "right", StaticSpec(dropped), (_long_note(),))
    import statistics  # noqa: PLC0415 - brings exact fractions and decimals along, for these models alone

    usual = int(statistics.median(len(token) for token in tokenizer.get_vocab()))
    return _Reading(min(limit, LONGEST_TOKENS), "right", StaticSpec(dropped, limit * usual), ())


def _long_note() -> str:
    return f"the repository reads texts of any length; they are cut at {LONGEST_TOKENS} tokens"
