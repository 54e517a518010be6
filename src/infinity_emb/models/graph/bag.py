"""A bag of words as graph nodes: how often each word of the vocabulary is in a text, times its weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.spec.bag import BagSpec


def bag_of_words(builder: GraphBuilder, module: BagSpec, ids: str) -> str:
    """Token ids `[slots]` → `[segments, vocabulary]`.

    Every token adds to the cell of its text and word in one long row; the first text is that of padding slots.
    """
    words = len(module.weights)
    factors = builder.input("pool_weights")
    texts = builder.node("Slice", [builder.node("Shape", [factors]), builder.ints(0), builder.ints(1)])
    size = builder.node("Mul", [builder.node("Add", [texts, builder.ints(1)]), builder.ints(words)])
    cells = builder.node("Expand", [builder.number(0.0), size])
    segments = builder.flatten(builder.input("segment_ids"))
    places = builder.node("Add", [builder.node("Mul", [segments, builder.ints(words)]), ids])
    counted = builder.node("ReduceSum", [factors, builder.ints(0)], keepdims=0)
    counted = builder.node(
        "Slice", [counted, builder.ints(0), builder.node("Shape", [ids])]
    )  # columns beyond the slots
    filled = builder.node("ScatterElements", [cells, places, counted], axis=0, reduction="add")
    rows = builder.node("Reshape", [filled, builder.ints(-1, words)])
    counts = builder.node("Slice", [rows, builder.ints(1), builder.ints(np.iinfo(np.int64).max), builder.ints(0)])
    if not module.counted:
        counts = builder.node("Min", [counts, builder.number(1.0)])
    return builder.node("Mul", [counts, builder.constant(module.weights, np.float32)])
