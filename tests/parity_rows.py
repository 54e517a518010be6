"""The rows that the parity suite has: what the table in docs/models.md must show."""

from __future__ import annotations

import importlib
from typing import NamedTuple

import measured
from forward import REAL_BACKENDS

GRAPH_BACKENDS = ("openvino", "onnxruntime")
COLUMNS = (*REAL_BACKENDS, measured.REFERENCE)  # the last one only for rows that are compared with float64
# Test modules that measure, without `test_`.
MODULES = (
    "adapters",
    "architectures",
    "graphs",
    "kinds_heads",
    "kinds_judge",
    "kinds_late",
    "kinds_sparse",
    "minilm",
    "modules",
    "routes",
    "static",
)
# Those that cannot be looked into without the reference libraries.
CLOSED_MODULES = ("joint", "siglip", "sounds")


class Row(NamedTuple):
    """One row.

    Attributes:
        kind: What is compared.
        name: The checkpoint.
        architecture: Its `model_type`.
        engines: That compute it, and the reference where it is measured too.
    """

    kind: str
    name: str
    architecture: str
    engines: tuple[str, ...] = REAL_BACKENDS


def declared() -> list[Row]:
    """Every row, in the order of the table."""
    suite = {name: importlib.import_module(f"parity.test_{name}") for name in MODULES}
    embedders, graphs, judge = suite["architectures"], suite["graphs"], suite["kinds_judge"]
    late, sparse, real = suite["kinds_late"], suite["kinds_sparse"], suite["minilm"]
    static, modules = suite["static"], suite["modules"]
    return [
        Row(real.KIND, real.ROW, "bert"),
        *(Row(embedders.PADDED, name, name) for name in embedders.tiny_embedders.MODEL_TYPES),
        *(Row(embedders.EMBEDS, name, kind) for name, (kind, _) in embedders.EMBEDDERS.items()),
        *(Row(graphs.STATES, name, case[0], GRAPH_BACKENDS) for name, case in graphs.CASES.items()),
        *(Row(graphs.FORMULAS, name, kind, GRAPH_BACKENDS) for name, kind in graphs.REMOTE.items()),
        *(Row(graphs.STATIC, name, "static", GRAPH_BACKENDS) for name in graphs.STATIC_CASES),
        *(Row(static.KIND, name, "static", GRAPH_BACKENDS) for name in (*static.CASES, *static.MODEL2VEC)),
        *(Row(modules.LAYERS, name, case[0]) for name, case in modules.LAYER_CASES.items()),
        *(Row(modules.LAYERS, name, name, (modules.LAYER_ENGINE,)) for name in modules.LAYER_FAMILIES),
        *(Row(modules.STATES, name, "bert") for name in modules.STATE_CASES),
        *(Row(modules.WORDS, name, "words") for name in modules.WORD_CASES),
        *(Row(modules.WORDS, name, "bag") for name in modules.BAG_CASES),
        *(Row(embedders.SCORES, name, name) for name in embedders.RERANKERS),
        *(Row(embedders.CLASSES, name, name.partition(" ")[0]) for name in embedders.CLASS_ROWS),
        *(Row(embedders.SCORE_LOGITS, name, name, COLUMNS) for name in embedders.RERANKERS),
        *(Row(embedders.CLASS_LOGITS, name, name, COLUMNS) for name in embedders.CLASSIFIERS),
        *(Row(graphs.LOGITS, name, case[0], GRAPH_BACKENDS) for name, case in graphs.SCORED.items()),
        *(Row(judge.KIND, name, case[0]) for name, case in judge.CASES.items()),
        Row(judge.KIND, judge.LOGIT_SCORE, "qwen3"),
        *(Row(judge.LOGITS, name, case[0], COLUMNS) for name, case in judge.CASES.items()),
        Row(judge.LOGITS, judge.LOGIT_SCORE, "qwen3", COLUMNS),
        *(Row(sparse.KIND, name, case[0]) for name, case in sparse.CASES.items()),
        *(Row(sparse.WEIGHTS, name, case[0], COLUMNS) for name, case in sparse.CASES.items()),
        *(Row(modules.CODES, name, case[0]) for name, case in modules.CODE_CASES.items()),
        *(Row(late.KIND, name, case[0]) for name, case in late.CASES.items()),
        *(
            Row(suite["adapters"].KIND, name, "xlm-roberta", GRAPH_BACKENDS)
            for name in suite["adapters"].NAMES.values()
        ),
        *(
            Row(suite["routes"].KIND, name, name.rpartition(" ")[2], engines)
            for name, engines in _routed(suite).items()
        ),
        *(Row(suite["kinds_heads"].KIND, name, "xlm-roberta") for name in suite["kinds_heads"].CASES),
        *(Row(measured.JOINT, name, "clip") for name in ("pictures", "texts")),
        *(Row(measured.JOINT, f"{name} of SigLIP", "siglip") for name in ("pictures", "texts")),
        *(Row(measured.SOUNDS, name, "clap") for name in ("sounds cut", "sounds fused", "texts")),
    ]


def _routed(suite: dict) -> dict[str, tuple[str, ...]]:
    pairs = suite["routes"].PAIRS
    return {case: tuple(engine for name, engine in pairs if name == case) for case, _ in pairs}
