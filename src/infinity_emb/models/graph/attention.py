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
        shared: Heads of keys and values; each serves `count / shared` query heads (Ainslie et al. 2023).
            None: as many as there are query heads.
        scale: Factor of the scores, None for `1/√size`.
    """

    count: int
    size: int
    shared: int | None = None
    scale: float | None = None

    @property
    def hidden_size(self) -> int:
        """Numbers of all heads together."""
        return self.count * self.size

    @property
    def key_count(self) -> int:
        """Heads of keys and values."""
        return self.shared or self.count


def segment_mask(builder: GraphBuilder) -> str:
    """Additive mask `[rows, 1, width, width]`: 0 inside a segment, `MASKED` across segments."""
    return _additive(builder, _same_segment(builder))


def attention_mask(builder: GraphBuilder, *, causal: bool = False, reach: int | None = None) -> str:
    """`segment_mask` that may also hide what comes later and what is farther away than `reach` tokens."""
    allowed = _same_segment(builder)
    if causal or reach is not None:
        back = distances(builder)
        if causal:
            allowed = builder.node("And", [allowed, builder.node("GreaterOrEqual", [back, builder.ints(0)])])
        if reach is not None:
            away = back if causal else builder.node("Abs", [back])
            allowed = builder.node("And", [allowed, builder.node("LessOrEqual", [away, builder.ints(reach)])])
    return _additive(builder, allowed)


def distances(builder: GraphBuilder) -> str:
    """Query position minus key position, int64 `[rows, 1, width, width]`; means nothing across segments."""
    return builder.node("Sub", list(_pairs(builder, "position_ids")))


def _same_segment(builder: GraphBuilder) -> str:
    queries, keys = _pairs(builder, "segment_ids")
    if builder.hides_filling:
        _, keys = _pairs(builder, "key_segment_ids")
    return builder.node("Equal", [queries, keys])


def _pairs(builder: GraphBuilder, name: str) -> tuple[str, str]:
    """An input `[rows, width]` as queries `[rows, 1, width, 1]` and keys `[rows, 1, 1, width]`."""
    value = builder.input(name)
    queries = builder.node("Unsqueeze", [value, builder.ints(1, 3)])
    return queries, builder.node("Unsqueeze", [value, builder.ints(1, 2)])


def _additive(builder: GraphBuilder, allowed: str) -> str:
    return builder.node("Where", [allowed, builder.number(0.0), builder.number(MASKED)])


class SegmentAttention:
    """Multi-head attention over `[slots, hidden]` values, computed on `[rows, heads, width, size]`.

    Args:
        builder: Of the graph.
        heads: Their number and size.
        mask: Added to the scores; `[rows, 1 or heads, width, width]`, a bias that all layers share included.
            None: every state of a row sees all of it.
        width: States of a row, where all rows have the same number; None: as many as `input_ids` has.
    """

    def __init__(self, builder: GraphBuilder, heads: Heads, mask: str | None, width: int | None = None) -> None:
        self._builder = builder
        self.heads = heads
        self._mask = mask
        if width is not None:
            self._split = builder.ints(-1, width, heads.count, heads.size)
            self._split_keys = builder.ints(-1, width, heads.key_count, heads.size)
            return
        shape = builder.node("Shape", [builder.input("input_ids")])
        self._split = builder.node("Concat", [shape, builder.ints(heads.count, heads.size)], axis=0)
        self._split_keys = self._split
        if heads.key_count != heads.count:
            self._split_keys = builder.node("Concat", [shape, builder.ints(heads.key_count, heads.size)], axis=0)

    def __call__(self, query: str, key: str, value: str) -> str:
        """Attend; all four values are `[slots, hidden]` (keys and values narrower where heads are shared)."""
        return self.attend(self.queries(self.scaled(query)), self.keys(key), self.keys(value))

    def scaled(self, query: str) -> str:
        """Queries times the factor of the scores, in any shape."""
        scale = attention_scale(self.heads.size) if self.heads.scale is None else self.heads.scale
        return query if scale == 1.0 else self._builder.node("Mul", [query, self._builder.number(scale)])

    def queries(self, value: str) -> str:
        """`[slots, hidden]` → `[rows, width, heads, size]`."""
        return self._builder.node("Reshape", [value, self._split])

    def keys(self, value: str) -> str:
        """Keys or values `[slots, key_count·size]` → `[rows, width, key_count, size]`."""
        return self._builder.node("Reshape", [value, self._split_keys])

    def attend(self, queries: str, keys: str, values: str, bias: str | None = None) -> str:
        """Scaled queries, keys and values in rows → `[slots, hidden]`; `bias` is this layer's own."""
        builder, heads = self._builder, self.heads
        queries = builder.node("Transpose", [queries], perm=[0, 2, 1, 3])
        keys = builder.node("Transpose", [keys], perm=[0, 2, 3, 1])
        values = builder.node("Transpose", [values], perm=[0, 2, 1, 3])
        scores = self._ungroup(builder.node("MatMul", [self._group(queries), keys]))
        if bias is not None:
            scores = builder.node("Add", [scores, bias])
        if self._mask is not None:
            scores = builder.node("Add", [scores, self._mask])
        weights = builder.node("Softmax", [scores], axis=-1)
        context = self._ungroup(builder.node("MatMul", [self._group(weights), values]))
        merged = builder.node("Transpose", [context], perm=[0, 2, 1, 3])
        return builder.node("Reshape", [merged, builder.ints(-1, heads.hidden_size)])

    def _group(self, value: str) -> str:
        """`[rows, heads, width, n]` → `[rows, key_count, heads/key_count·width, n]`: no key is ever copied."""
        if self.heads.key_count == self.heads.count:
            return value
        return self._builder.node("Reshape", [value, self._builder.ints(0, self.heads.key_count, -1, 0)])

    def _ungroup(self, value: str) -> str:
        """The reverse of `_group`."""
        if self.heads.key_count == self.heads.count:
            return value
        return self._builder.node("Reshape", [value, self._builder.ints(0, self.heads.count, -1, 0)])
