"""Turns queries and keys by their position inside their text (rotary position embedding)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from infinity_emb.errors import NotComputedError
from infinity_emb.models.graph.positions import text_lengths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.models.graph.attention import SegmentAttention
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.graph.frequencies import Frequencies, Longer

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
        self._cosines, self._sines = (self._spread(value) for value in _turns(builder, frequencies))

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


def _turns(builder: GraphBuilder, frequencies: Frequencies) -> tuple[str, str]:
    """Cosines and sines `[rows, width, pairs]` of every token, by its position and by the length of its text."""
    longest, longer, scale = builder.longest, frequencies.longer, frequencies.scale
    sets = [frequencies.radians]
    if longer is not None and 0 < longest <= longer.limit:
        longer = None
    if longer is not None and longer.steady:
        sets.append(longer.radians(longer.limit + 1))
    positions = builder.input("position_ids")
    fits = 0 < longest * len(sets) * len(frequencies.radians) <= TABLE_NUMBERS
    if fits and len(sets) > 1 and longer is not None:
        moved = builder.node("Where", [_is_long(builder, longer), builder.ints(longest), builder.ints(0)])
        positions = builder.node("Add", [positions, moved])
    if fits:
        usual = _looked_up(builder, np.stack(sets), scale, positions)
    else:
        usual = _computed(builder, builder.constant(frequencies.radians, np.float32), scale)
    if longer is None or (fits and longer.steady):
        return usual
    stretched = _computed(builder, _radians_by_length(builder, longer), scale)
    chosen = builder.node("Unsqueeze", [_is_long(builder, longer), builder.ints(2)])
    cosines, sines = (
        builder.node("Where", [chosen, long, short]) for long, short in zip(stretched, usual, strict=True)
    )
    return cosines, sines


def _is_long(builder: GraphBuilder, longer: Longer) -> str:
    return builder.node("Greater", [text_lengths(builder), builder.ints(longer.limit)])


def _radians_by_length(builder: GraphBuilder, longer: Longer) -> str:
    """Float32 `[rows, width, pairs]` of texts beyond the limit; of the others it means nothing."""
    if longer.steady:
        return builder.constant(longer.radians(longer.limit + 1), np.float32)
    count = builder.longest - longer.limit
    if not 0 < count * len(longer.radians(longer.limit + 1)) <= TABLE_NUMBERS:
        raise NotComputedError(
            f"config.json: the rotary scaling 'dynamic' has frequencies of its own for every length beyond "
            f"{longer.limit} tokens; that is computed here up to {TABLE_NUMBERS} numbers in all. State a smaller "
            "max_seq_length in sentence_bert_config.json, or use --engine torch.",
            param="config.json: rope_parameters",
        )
    table = np.stack([longer.radians(longer.limit + 1 + number) for number in range(count)])
    beyond = builder.node("Sub", [text_lengths(builder), builder.ints(longer.limit + 1)])
    place = builder.node("Max", [beyond, builder.ints(0)])
    return builder.gather(builder.constant(table, np.float32), place)


def _looked_up(builder: GraphBuilder, sets: NDArray[np.float32], scale: float, positions: str) -> tuple[str, str]:
    """From tables that have a row for every position, one set of frequencies `[sets, pairs]` after the other."""
    # float32 angles as in the reference, then exact
    angles = (np.arange(builder.longest, dtype=np.float32)[:, None] * sets[:, None]).astype(np.float64)
    angles = angles.reshape(-1, sets.shape[1])
    cosines = builder.gather(builder.constant(np.cos(angles) * scale, np.float32), positions)
    return cosines, builder.gather(builder.constant(np.sin(angles) * scale, np.float32), positions)


def _computed(builder: GraphBuilder, radians: str, scale: float) -> tuple[str, str]:
    """The same for positions without limit."""
    positions = builder.node("Cast", [builder.input("position_ids")], to=TensorProto.FLOAT)
    positions = builder.node("Unsqueeze", [positions, builder.ints(2)])
    angles = builder.node("Mul", [positions, radians])
    cosines, sines = builder.node("Cos", [angles]), builder.node("Sin", [angles])
    if scale == 1.0:
        return cosines, sines
    factor = builder.number(scale)
    return builder.node("Mul", [cosines, factor]), builder.node("Mul", [sines, factor])


def attend_together(builder: GraphBuilder, attention: SegmentAttention, together: str, turn: Rotary) -> str:
    """Attention over queries, keys and values side by side: `[slots, 3·hidden]` → `[slots, hidden]`."""
    width = attention.heads.hidden_size
    query, rest = builder.split(together, width, 2 * width)
    key, value = builder.split(rest, width, width)
    queries = turn(attention.queries(attention.scaled(query)))
    return attention.attend(queries, turn(attention.keys(key)), attention.keys(value))
