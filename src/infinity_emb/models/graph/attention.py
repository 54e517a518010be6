"""Attention inside segments: several texts share a row and none sees another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.models.graph.builder import attention_scale

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

# Low enough to vanish in softmax in every float format, high enough not to overflow when added to.
MASKED = -10000.0


@dataclass(frozen=True, slots=True)
class Heads:
    """How a hidden state divides.

    Attributes:
        count: Attention heads.
        size: Numbers a head.
    """

    count: int
    size: int

    @property
    def hidden_size(self) -> int:
        """Numbers of all heads together."""
        return self.count * self.size


def segment_mask(builder: GraphBuilder) -> str:
    """Additive mask `[rows, 1, width, width]`: 0 inside a segment, `MASKED` across segments."""
    segments = builder.input("segment_ids")
    queries = builder.node("Unsqueeze", [segments, builder.ints(1, 3)])
    keys = builder.node("Unsqueeze", [segments, builder.ints(1, 2)])
    same = builder.node("Equal", [queries, keys])
    return builder.node("Where", [same, builder.number(0.0), builder.number(MASKED)])


class SegmentAttention:
    """Multi-head attention over `[slots, hidden]` values, computed on `[rows, heads, width, size]`."""

    def __init__(self, builder: GraphBuilder, heads: Heads, mask: str) -> None:
        self._builder = builder
        self._heads = heads
        self._mask = mask
        shape = builder.node("Shape", [builder.input("input_ids")])
        self._split = builder.node("Concat", [shape, builder.ints(heads.count, heads.size)], axis=0)

    def __call__(self, query: str, key: str, value: str) -> str:
        """Attend; all four values are `[slots, hidden]`."""
        builder = self._builder
        scale = builder.number(attention_scale(self._heads.size))
        queries = builder.node("Transpose", [self._rows(builder.node("Mul", [query, scale]))], perm=[0, 2, 1, 3])
        keys = builder.node("Transpose", [self._rows(key)], perm=[0, 2, 3, 1])
        values = builder.node("Transpose", [self._rows(value)], perm=[0, 2, 1, 3])
        scores = builder.node("Add", [builder.node("MatMul", [queries, keys]), self._mask])
        context = builder.node("MatMul", [builder.node("Softmax", [scores], axis=-1), values])
        merged = builder.node("Transpose", [context], perm=[0, 2, 1, 3])
        return builder.node("Reshape", [merged, builder.ints(-1, self._heads.hidden_size)])

    def _rows(self, value: str) -> str:
        """`[slots, hidden]` → `[rows, width, heads, size]`."""
        return self._builder.node("Reshape", [value, self._split])
