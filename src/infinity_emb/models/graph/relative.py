"""Score biases that depend on the distance between two tokens: buckets (T5, MPNet) and slopes (ALiBi)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.graph.attention import distances

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.models.graph.builder import GraphBuilder


def bucket_bias(builder: GraphBuilder, table: str, buckets: int, farthest: int) -> str:
    """Bias `[rows, heads, width, width]` from a learnt table `[buckets, heads]` by T5's two-sided buckets."""
    numbers = t5_buckets(np.arange(-farthest, farthest + 1), buckets, farthest)
    by_distance = builder.gather(builder.weight(table), builder.constant(numbers, np.int64))
    index = builder.node("Squeeze", [distance_index(builder, farthest), builder.ints(1)])
    return builder.node("Transpose", [builder.gather(by_distance, index)], perm=[0, 3, 1, 2])


def distance_index(builder: GraphBuilder, farthest: int) -> str:
    """Query minus key position, clipped to `farthest` and shifted to start at 0: int64 `[rows, 1, width, width]`."""
    low, high = builder.ints(-farthest), builder.ints(farthest)
    clipped = builder.node("Min", [builder.node("Max", [distances(builder), low]), high])
    return builder.node("Add", [clipped, high])


def t5_buckets(back: NDArray[np.int64], buckets: int, farthest: int) -> NDArray[np.int64]:
    """Bucket of each distance (query minus key): exact when near, logarithmic up to `farthest`, one half a side.

    Raffel et al. 2020, section 2.1; in float32 like the reference, since rounding decides at the borders.
    """
    half = buckets // 2
    exact = half // 2
    away = np.abs(back)
    steps = np.log(np.maximum(away, 1).astype(np.float32) / np.float32(exact)) / np.float32(math.log(farthest / exact))
    far = np.minimum(exact + (steps * np.float32(half - exact)).astype(np.int64), half - 1)
    return np.asarray(np.where(back < 0, half, 0) + np.where(away < exact, away, far), np.int64)


def alibi_bias(builder: GraphBuilder, heads: int) -> str:
    """Bias `[rows, heads, width, width]`: minus the distance times a slope of its own for each head."""
    slopes = builder.constant(-alibi_slopes(heads)[:, None, None], np.float32)
    away = builder.node("Cast", [builder.node("Abs", [distances(builder)])], to=1)
    return builder.node("Mul", [away, slopes])


def alibi_slopes(heads: int) -> NDArray[np.float64]:
    """Slopes of Press et al. 2022: a geometric series, filled up from the next longer one if not a power of two."""
    power = 1 << (heads.bit_length() - 1)
    slopes = _series(power)
    return np.concatenate([slopes, _series(2 * power)[::2][: heads - power]])


def _series(count: int) -> NDArray[np.float64]:
    return np.asarray(np.power(2.0, -8.0 * np.arange(1, count + 1) / count), np.float64)
