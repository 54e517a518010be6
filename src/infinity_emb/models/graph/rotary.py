"""Turns queries and keys by their position inside their text (rotary position embedding)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from infinity_emb.models.graph.attention import SegmentAttention
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.graph.frequencies import Frequencies


class Rotary:
    """Cosines and sines `[rows, width, 1, 2·pairs]`, computed once and used by every layer of a kind.

    Args:
        builder: Of the graph.
        frequencies: One for each pair of numbers.
        head_size: Numbers a head; those beyond `2·pairs` stay as they are.
    """

    def __init__(self, builder: GraphBuilder, frequencies: Frequencies, head_size: int) -> None:
        self._builder = builder
        self._pairs = len(frequencies.radians)
        self._still = head_size - 2 * self._pairs
        positions = builder.node("Cast", [builder.input("position_ids")], to=1)
        positions = builder.node("Unsqueeze", [positions, builder.ints(2, 3)])
        angles = builder.node("Mul", [positions, builder.constant(np.tile(frequencies.radians, 2), np.float32)])
        self._cosines, self._sines = builder.node("Cos", [angles]), builder.node("Sin", [angles])
        if frequencies.scale != 1.0:
            scale = builder.number(frequencies.scale)
            self._cosines = builder.node("Mul", [self._cosines, scale])
            self._sines = builder.node("Mul", [self._sines, scale])

    def __call__(self, value: str) -> str:
        """Turn `[rows, width, heads, size]`; number i is paired with number i + pairs."""
        builder = self._builder
        still = None
        if self._still:
            value, still = builder.split(value, 2 * self._pairs, self._still)
        first, second = builder.split(value, self._pairs, self._pairs)
        crossed = builder.node("Concat", [builder.node("Neg", [second]), first], axis=-1)
        kept = builder.node("Mul", [value, self._cosines])
        turned = builder.node("Add", [kept, builder.node("Mul", [crossed, self._sines])])
        return turned if still is None else builder.node("Concat", [turned, still], axis=-1)


def attend_together(builder: GraphBuilder, attention: SegmentAttention, together: str, turn: Rotary) -> str:
    """Attention over queries, keys and values side by side: `[slots, 3·hidden]` → `[slots, hidden]`."""
    width = attention.heads.hidden_size
    query, rest = builder.split(together, width, 2 * width)
    key, value = builder.split(rest, width, width)
    queries = turn(attention.queries(attention.scaled(query)))
    return attention.attend(queries, turn(attention.keys(key)), attention.keys(value))
