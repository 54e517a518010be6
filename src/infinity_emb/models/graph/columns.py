"""Fits token states to the columns of the weights that pool them, of which there are more than slots."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder


def pad_to_columns(builder: GraphBuilder, value: str, factors: str) -> str:
    """Rows of zeros behind `[slots, width]`, up to the columns of the weights; see `base` on why there are more."""
    columns = builder.gather(builder.node("Shape", [factors]), builder.ints(1))
    slots = builder.gather(builder.node("Shape", [value]), builder.ints(0))
    missing = builder.node("Sub", [columns, slots])
    ends = builder.node("Concat", [builder.ints(0, 0), missing, builder.ints(0)], axis=0)
    return builder.node("Pad", [value, ends])
