"""Tiny embedders with a Router, as sentence-transformers stores them; made without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import tiny
import tiny_modules
import tiny_static
from tiny_architectures import HIDDEN

if TYPE_CHECKING:
    from pathlib import Path

ROUTER = "sentence_transformers.base.modules.router.Router"
FORMER = "sentence_transformers.models.Asym"
TRANSFORMER = "sentence_transformers.base.modules.transformer.Transformer"
STATIC = "sentence_transformers.sentence_transformer.modules.static_embedding.StaticEmbedding"
TYPES = tiny_modules.TYPES | {"Transformer": TRANSFORMER, "StaticEmbedding": STATIC}
PROMPTS = {"query": "ask: ", "document": "tell the reader: "}


def heads(folder: Path, *, kind: str = ROUTER, routes: tuple[str, ...] = ("query", "document"), **parameters) -> Path:
    """One transformer, then a Dense module for each route, then unit vectors."""
    tiny.tiny_bert(folder)
    home = folder / "2_Router"
    chance = np.random.default_rng(5)
    for name in routes:
        tiny.write_dense(home / f"{name}_0_Dense", HIDDEN, 20, chance)
    _write_router(home, {name: ["Dense"] for name in routes}, kind, parameters)
    chain = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Router", kind), ("3_Normalize", "Normalize")]
    return _finish(folder, chain)


def static_queries(folder: Path, **parameters) -> Path:
    """Queries through a table, documents through a transformer of another width, then unit vectors."""
    tiny_static.static(folder / "query_0_StaticEmbedding", modules=())
    (folder / "query_0_StaticEmbedding/modules.json").unlink()
    _transformer(folder / "document_0_Transformer", "bert")
    _pooling(folder / "document_1_Pooling", "mean", include_prompt=False)
    tiny.write_dense(folder / "document_2_Dense", HIDDEN, tiny_static.DIM, np.random.default_rng(5))
    routes = {"query": ["StaticEmbedding"], "document": ["Transformer", "Pooling", "Dense"]}
    _write_router(folder, routes, ROUTER, parameters)
    return _finish(folder, [("", ROUTER), ("1_Normalize", "Normalize")])


def two_transformers(folder: Path, **parameters) -> Path:
    """Queries and documents through transformers of their own, whose tokenizers, lengths and poolings differ."""
    _transformer(folder / "query_0_Transformer", "roberta", max_seq_length=12)
    _transformer(folder / "document_0_Transformer", "bert")
    _pooling(folder / "query_1_Pooling", "cls")
    _pooling(folder / "document_1_Pooling", "mean")
    _write_router(folder, {name: ["Transformer", "Pooling"] for name in ("query", "document")}, ROUTER, parameters)
    return _finish(folder, [("", ROUTER)])


def _transformer(folder: Path, kind: str, max_seq_length: int | None = None) -> None:
    tiny.tiny(kind, folder, modules=False)
    tiny.write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_seq_length, "do_lower_case": False})


def _pooling(folder: Path, mode: str, *, include_prompt: bool = True) -> None:
    stated = {"embedding_dimension": HIDDEN, "pooling_mode": mode, "include_prompt": include_prompt}
    tiny.write_json(folder / "config.json", stated)


def _write_router(folder: Path, routes: dict[str, list[str]], kind: str, parameters: dict) -> None:
    structure = {
        name: [f"{name}_{place}_{module}" for place, module in enumerate(modules)] for name, modules in routes.items()
    }
    types = {one: TYPES[one.rpartition("_")[2]] for modules in structure.values() for one in modules}
    stated = {"default_route": "document", "allow_empty_key": True, "route_mappings": {}}
    if kind == FORMER:
        stated = {"allow_empty_key": True}
    content = {"types": types, "structure": structure, "parameters": stated | parameters}
    tiny.write_json(folder / ("config.json" if kind == FORMER else "router_config.json"), content)


def _finish(folder: Path, chain: list[tuple[str, str]]) -> Path:
    tiny.write_modules(folder, [(place, TYPES.get(kind, kind)) for place, kind in chain])
    saved = {"model_type": "SentenceTransformer", "prompts": PROMPTS, "default_prompt_name": None}
    tiny.write_json(folder / "config_sentence_transformers.json", saved | {"similarity_fn_name": "cosine"})
    return folder
