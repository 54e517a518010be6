"""One vector of a fixed size for a matrix of any size, whose dot products come near MaxSim (MUVERA).

Dhulipala et al. 2024, section 2: space is cut into cells by random planes; a query adds up its vectors in each cell, a
document averages them, and a cell without any takes the vector whose cell is nearest; each cell is projected to fewer
numbers by random signs, and all of it is repeated.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.types import FloatArray

# An index is made for one set of these; another set needs another index.
REPETITIONS, PLANES, PROJECTED, SEED = 20, 5, 16, 42
CELLS = 1 << PLANES
DIM = REPETITIONS * CELLS * PROJECTED
_BITS = 1 << np.arange(PLANES)
_CELL_NUMBERS = np.arange(CELLS)
_HAMMING = np.array([[int(one ^ other).bit_count() for other in range(CELLS)] for one in range(CELLS)])


class _Draw(NamedTuple):
    """What is random, for vectors of one width.

    Attributes:
        planes: Normals of the planes `[repetitions, width, planes]`.
        signs: Projections `[repetitions, width, projected]`, scaled.
    """

    planes: FloatArray
    signs: FloatArray


def encode_fixed(vectors: FloatArray, *, is_query: bool) -> FloatArray:
    """The encoding `[DIM]` of a matrix `[n, width]`; all zero for a matrix without rows."""
    if not len(vectors):
        return np.zeros(DIM, np.float32)
    draw = _draw(vectors.shape[1])
    parts = []
    for planes, signs in zip(draw.planes, draw.signs, strict=True):
        cells = ((vectors @ planes) > 0) @ _BITS
        sums = np.zeros((CELLS, vectors.shape[1]), np.float32)
        np.add.at(sums, cells, vectors)
        if not is_query:
            sums = _averaged(sums, vectors, cells)
        parts.append((sums @ signs).ravel())
    return np.concatenate(parts).astype(np.float32)


def _averaged(sums: FloatArray, vectors: FloatArray, cells: NDArray[np.int64]) -> FloatArray:
    counts = np.bincount(cells, minlength=CELLS)
    means = sums / np.maximum(counts, 1)[:, None]
    empty = _CELL_NUMBERS[counts == 0]
    if len(empty):
        means[empty] = vectors[_HAMMING[empty][:, cells].argmin(axis=1)]
    result: FloatArray = means.astype(np.float32)
    return result


@cache
def _draw(width: int) -> _Draw:
    random = np.random.RandomState(SEED)  # the stream of the newer generators may change with NumPy
    planes = random.standard_normal((REPETITIONS, width, PLANES)).astype(np.float32)
    signs = random.choice([-1.0, 1.0], size=(REPETITIONS, width, PROJECTED)) / np.sqrt(PROJECTED)
    return _Draw(planes, signs.astype(np.float32))
