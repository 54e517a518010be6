"""Turns queries and keys by their position inside their text (rotary position embedding)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

if TYPE_CHECKING:
    from infinity_emb.models.graph.attention import SegmentAttention
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.graph.frequencies import Frequencies

# Numbers in a table of cosines; where a checkpoint reads longer texts they are computed with the batch.
TABLE_NUMBERS = 1 << 22


class Rotary:
    """Cosines and sines `[rows, width, 1, 2·pairs]`, got once and used by every layer of a kind.

    They are looked up: computed with the batch they would need positions times frequencies, which a backend that
    computes in 16 bits rounds by whole radians.

    Args:
        builder: Of the graph.
        frequencies: One for each pair of numbers.
        head_size: Numbers a head; those beyond `2·pairs` stay as they are.
    """

    def __init__(self, builder: GraphBuilder, frequencies: Frequencies, head_size: int) -> None:
        self._builder = builder
        self._pairs = len(frequencies.radians)
        self._still = head_size - 2 * self._pairs
        found = _looked_up if 0 < builder.longest * self._pairs <= TABLE_NUMBERS else _computed
        self._cosines, self._sines = (self._spread(value) for value in found(builder, frequencies))

    def _spread(self, value: str) -> str:
        """`[rows, width, pairs]` → `[rows, width, 1, 2·pairs]`."""
        builder = self._builder
        return builder.node("Unsqueeze", [builder.node("Concat", [value, value], axis=-1), builder.ints(2)])

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


def _looked_up(builder: GraphBuilder, frequencies: Frequencies) -> tuple[str, str]:
    """Cosines and sines `[rows, width, pairs]` from tables that have a row for every position."""
    # float32 angles as in the reference, then exact
    angles = (np.arange(builder.longest, dtype=np.float32)[:, None] * frequencies.radians).astype(np.float64)
    scale, positions = frequencies.scale, builder.input("position_ids")
    cosines = builder.gather(builder.constant(np.cos(angles) * scale, np.float32), positions)
    return cosines, builder.gather(builder.constant(np.sin(angles) * scale, np.float32), positions)


def _computed(builder: GraphBuilder, frequencies: Frequencies) -> tuple[str, str]:
    """The same for positions without limit."""
    positions = builder.node("Cast", [builder.input("position_ids")], to=TensorProto.FLOAT)
    positions = builder.node("Unsqueeze", [positions, builder.ints(2)])
    angles = builder.node("Mul", [positions, builder.constant(frequencies.radians, np.float32)])
    cosines, sines = builder.node("Cos", [angles]), builder.node("Sin", [angles])
    if frequencies.scale == 1.0:
        return cosines, sines
    scale = builder.number(frequencies.scale)
    return builder.node("Mul", [cosines, scale]), builder.node("Mul", [sines, scale])


def attend_together(builder: GraphBuilder, attention: SegmentAttention, together: str, turn: Rotary) -> str:
    """Attention over queries, keys and values side by side: `[slots, 3·hidden]` → `[slots, hidden]`."""
    width = attention.heads.hidden_size
    query, rest = builder.split(together, width, 2 * width)
    key, value = builder.split(rest, width, width)
    queries = turn(attention.queries(attention.scaled(query)))
    return attention.attend(queries, turn(attention.keys(key)), attention.keys(value))
