"""Bicubic stretching of one axis, number for number as torch computes it with aligned ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.models.graph.builder import GraphBuilder

    Floats = NDArray[np.float32]

_SHARPNESS = -0.75  # the parameter of the kernel that torch has chosen (Keys 1981 calls it a)


def stretch(builder: GraphBuilder, value: str, size: int, target: int) -> str:
    """`[a, b, size, c]` → `[a, b, target, c]`."""
    parts = []
    for neighbours, weights in zip(*cubic_taps(size, target), strict=True):
        rows = builder.node("Gather", [value, builder.constant(neighbours, np.int64)], axis=2)
        parts.append(builder.node("Mul", [rows, builder.constant(weights[:, None], np.float32)]))
    return builder.add(*parts)


def cubic_taps(size: int, target: int) -> tuple[NDArray[np.int64], Floats]:
    """Neighbours of each new place, and what they weigh.

    Returns:
        int64 `[4, target]`, clipped to the ends, and float32 `[4, target]`.
    """
    scale = np.float32((size - 1) / (target - 1))
    places = np.arange(target, dtype=np.float32) * scale  # float32 like the reference: a place decides a weight
    before = np.floor(places).astype(np.int64)
    share = places - before.astype(np.float32)
    index = np.clip(before + np.arange(-1, 3)[:, None], 0, size - 1)
    weights = np.stack([_far(share + 1), _near(share), _near(1 - share), _far(2 - share)])
    return index, weights.astype(np.float32)


def _near(distance: Floats) -> Floats:
    """The kernel up to 1 away."""
    value: Floats = ((_SHARPNESS + 2) * distance - (_SHARPNESS + 3)) * distance * distance + 1
    return value


def _far(distance: Floats) -> Floats:
    """The kernel from 1 to 2 away."""
    value: Floats = ((_SHARPNESS * distance - 5 * _SHARPNESS) * distance + 8 * _SHARPNESS) * distance - 4 * _SHARPNESS
    return value
