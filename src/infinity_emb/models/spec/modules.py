"""Reads modules.json, in both generations of its type names, into the chain that follows the transformer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.adapters import MODULE as ADAPTED
from infinity_emb.models.spec.adapters import is_adapted
from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.files import check_inside, join
from infinity_emb.models.spec.layers import TOKENS, acts_on, read_dense, read_layer_norm, read_normalize
from infinity_emb.models.spec.model import DenseSpec, NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.models.spec.pooling import read_pooling
from infinity_emb.models.spec.router import DOCUMENT, FORMER, QUERY, ROUTER, read_routes
from infinity_emb.models.spec.token_chain import (
    CONVOLUTION,
    LAYER_MEAN,
    RECURRENT,
    TOKEN_WEIGHTS,
    add_token_module,
    weighed_pooling,
)
from infinity_emb.types import PoolingMethod

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infinity_emb.models.spec.files import ConfigFile, Repository
    from infinity_emb.models.spec.model import ModuleSpec

FILE = "modules.json"
STATIC = "StaticEmbedding"
WORDS, BAG = "WordEmbeddings", "BoW"
TOKEN_KINDS = (LAYER_MEAN, TOKEN_WEIGHTS, CONVOLUTION, RECURRENT)
EMBEDDER_KINDS = ("Transformer", *TOKEN_KINDS, "Pooling", "Dense", "LayerNorm", "Dropout", "Normalize")
# The kinds of the other families; in an embedder they are refused.
OTHER_KINDS = (
    STATIC,
    WORDS,
    BAG,
    ROUTER,
    FORMER,
    "SparseStaticEmbedding",
    "LogitScore",
    "MLMTransformer",
    "SpladePooling",
    "SparseAutoEncoder",
    "MultiVectorMask",
    "HierarchicalTokenPooling",
    "CLIPModel",
)
SUPPORTED = (*EMBEDDER_KINDS, *OTHER_KINDS)
_TRANSFORMER = "sentence_transformers.models.Transformer"
_ALIASES = {"pylate.models.Dense.Dense": "sentence_transformers.models.Dense"}
_FIRST = ("Transformer", "MLMTransformer", "CLIPModel", STATIC, WORDS, BAG)
_OVERRIDES = {PoolingMethod.MEAN: PoolingMode.MEAN, PoolingMethod.CLS: PoolingMode.CLS}


@dataclass(frozen=True, slots=True)
class ModuleEntry:
    """One row of modules.json.

    Attributes:
        kind: Class name without its path, one of `SUPPORTED`.
        folder: Where its files are, relative to the repository.
        type: As modules.json writes it.
    """

    kind: str
    folder: str
    type: str


def read_entries(repository: Repository) -> tuple[ModuleEntry, ...] | None:
    """The rows of modules.json; None if the repository has none.

    Raises:
        CheckpointError: A malformed row, an unsupported module, or a path outside the repository.
    """
    rows = repository.json(FILE)
    if rows is None:
        return None
    if not isinstance(rows, list) or not rows:
        raise CheckpointError(f"{FILE}: expected a list with at least one module.", param=FILE)
    aliases = _ALIASES | ({ADAPTED: _TRANSFORMER} if is_adapted(repository) else {})
    entries = tuple(_entry(position, row, aliases) for position, row in enumerate(rows))
    if len(entries) == 1 and entries[0].kind == ROUTER:
        return _document_route(repository, entries[0].folder)
    transformers = sum(entry.kind in _FIRST for entry in entries)
    if entries[0].kind not in _FIRST or transformers != 1:
        raise CheckpointError(
            f"{FILE}: exactly one Transformer (or {STATIC}, {WORDS}, {BAG}), in the first place, is supported.",
            param=FILE,
        )
    return entries


def read_chain(repository: Repository, entries: tuple[ModuleEntry, ...], chain: Chain, pooling: PoolingMethod) -> Chain:
    """Read what follows the transformer, which `chain` begins with, and check that each module fits the one before.

    Raises:
        CheckpointError: A module's configuration or weights are wrong.
    """
    for position, entry in enumerate(entries):
        if entry.kind not in EMBEDDER_KINDS:
            raise CheckpointError(
                f"{FILE}: [{position}]: the module type {entry.type!r} is not supported in an embedder. "
                f"Supported there: {', '.join(EMBEDDER_KINDS)}. If the repository is of another family, "
                "config_sentence_transformers.json must name it as model_type.",
                param=f"{FILE}:[{position}].type",
            )
    for entry in entries[1:]:
        chain = extend_chain(repository, chain, entry, pooling)
    if not chain.vector_width:
        raise CheckpointError(f"{FILE}: no Pooling module, so there is no vector. Add one.", param=FILE)
    return chain


def plain_chain(hidden_size: int, mode: PoolingMode) -> Chain:
    """Pooling and unit vectors, for a repository that says nothing."""
    note = f"no {FILE} for an embedder: {mode.value} pooling and unit vectors are assumed"
    return Chain(hidden_size, hidden_size, (PoolingSpec((mode,)), NormalizeSpec()), (note,))


def override_mode(pooling: PoolingMethod) -> PoolingMode | None:
    """The mode that `--pooling-method` asks for; None is what the repository says."""
    return _OVERRIDES.get(pooling)


def _entry(position: int, row: Any, aliases: Mapping[str, str] = _ALIASES) -> ModuleEntry:
    field = f"[{position}]"
    match row:
        case {"type": str(path), "path": str(folder)}:
            pass
        case _:
            raise CheckpointError(
                f"{FILE}: {field}: expected an object with the strings `type` and `path`.", param=f"{FILE}:{field}"
            )
    known = aliases.get(path, path)
    root, _, _ = known.partition(".")
    kind = known.rpartition(".")[2]
    if root != "sentence_transformers" or kind not in SUPPORTED:
        raise CheckpointError(
            f"{FILE}: {field}: the module type {path!r} is not supported. "
            f"Supported modules of sentence_transformers: {', '.join(SUPPORTED)}.",
            param=f"{FILE}:{field}.type",
        )
    folder = "" if folder in {".", "./"} else folder  # as model2vec writes the root
    return ModuleEntry(kind, check_inside(FILE, f"{field}.path", folder), path)


def _document_route(repository: Repository, folder: str) -> tuple[ModuleEntry, ...]:
    """The modules of a Router's route for documents, and behind them that of its route for queries."""
    found = read_routes(repository, folder)
    routes = found.modules
    if set(routes) != {QUERY, DOCUMENT} or found.default != DOCUMENT:
        raise CheckpointError(
            f"{found.file}: structure: the routes {', '.join(sorted(routes))} of a sparse encoder with the default "
            f"{found.default} are not supported. Supported: query and document with the default document.",
            param=f"{found.file}:structure",
        )
    entries = [
        _entry(position, {"type": kind, "path": place})
        for position, (kind, place) in enumerate([*routes[DOCUMENT], *routes[QUERY]])
    ]
    kinds = [entry.kind for entry in entries]
    if kinds[0] not in _FIRST or kinds[1:] != ["SpladePooling", "SparseStaticEmbedding"]:
        raise CheckpointError(
            f"{FILE}: a Router of {', '.join(kinds)} is not supported. Supported: documents through MLMTransformer and "
            "SpladePooling, queries through SparseStaticEmbedding.",
            param=FILE,
        )
    return tuple(entries)


def extend_chain(repository: Repository, chain: Chain, entry: ModuleEntry, pooling: PoolingMethod) -> Chain:
    """Read one more module.

    Raises:
        CheckpointError: Its configuration or weights are wrong, or it does not follow what is there.
    """
    if entry.kind not in EMBEDDER_KINDS[1:]:
        raise CheckpointError(
            f"{FILE}: the module type {entry.type!r} is not supported behind the first module of an embedder. "
            f"Supported there: {', '.join(EMBEDDER_KINDS[1:])}.",
            param=FILE,
        )
    if entry.kind in TOKEN_KINDS:
        return add_token_module(repository, chain, entry.kind, entry.folder)
    config = repository.config(
        join(entry.folder, "config.json"), required=entry.kind in {"Pooling", "Dense", "LayerNorm"}
    )
    if entry.kind == "Pooling":
        return _add_pooling(chain, config, pooling)
    if entry.kind == "Dense" and acts_on(config) == TOKENS:
        if chain.vector_width:
            raise config.error("module_input_name", "a Dense module for token states must come before Pooling.")
        dense = read_dense(repository, entry.folder, config, chain.token_width)
        return replace(chain, token_width=dense.out_features, modules=(*chain.modules, dense))
    if entry.kind == "Dropout":  # does nothing at inference
        return chain
    if not chain.vector_width:
        raise config.error("", f"{entry.kind} needs a pooled vector, but no Pooling module comes before it.")
    return _add_layer(repository, chain, entry, config)


def _add_pooling(chain: Chain, config: ConfigFile, pooling: PoolingMethod) -> Chain:
    if chain.vector_width:
        raise config.error("", "a second Pooling module is not supported.")
    spec = read_pooling(config, chain.token_width)
    mode = override_mode(pooling)
    notes = chain.notes
    if mode is not None and spec.modes != (mode,):
        stated = "+".join(known.value for known in spec.modes)
        notes = (*notes, f"pooling {mode.value} was asked for; the repository says {stated}")
        spec = PoolingSpec((mode,), spec.include_prompt)
    spec = weighed_pooling(chain, config, spec)
    width = chain.token_width * len(spec.modes)
    return replace(chain, vector_width=width, modules=(*chain.modules, spec), notes=notes)


def _add_layer(repository: Repository, chain: Chain, entry: ModuleEntry, config: ConfigFile) -> Chain:
    spec: ModuleSpec
    width = chain.vector_width
    if entry.kind == "Dense":
        spec = read_dense(repository, entry.folder, config, width)
    elif entry.kind == "LayerNorm":
        spec = read_layer_norm(repository, entry.folder, config, width)
    else:
        spec = read_normalize(config)
    if isinstance(spec, DenseSpec):
        width = spec.out_features
    return replace(chain, vector_width=width, modules=(*chain.modules, spec))
