"""Smaller number formats for finished vectors: int8, uint8 and one bit a dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.errors import InvalidInputError
from infinity_emb.types import EmbeddingDtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.types import FloatArray

# A unit vector of d dimensions has components around 1/√d; this many of those cover all but a few in a million,
# which saturate. Fixed ranges make a vector independent of what else is in the request.
RANGE_SIGMAS = 5.0


def quantize(vectors: FloatArray, dtype: EmbeddingDtype) -> NDArray[Any]:
    """Convert float32 vectors `[n, dim]`.

    * int8: `round(127·x / r)` clipped to -127..127, `r = 5/√dim` times the vector's own length (1 for unit vectors).
      Symmetric around 0, so cosines of the integers are those of the floats, and no calibration set is needed.
    * uint8: int8 plus 128.
    * ubinary: one bit a dimension, 1 where x > 0, packed big-endian into `dim/8` uint8.
    * binary: ubinary minus 128, as int8 (the convention of sentence-transformers).

    Raises:
        InvalidInputError: binary formats of a dimension that is no multiple of 8.
    """
    if dtype is EmbeddingDtype.FLOAT32:
        return vectors
    if dtype in (EmbeddingDtype.BINARY, EmbeddingDtype.UBINARY):
        if vectors.shape[1] % 8:
            raise InvalidInputError(
                f"{dtype} packs 8 dimensions into a byte; {vectors.shape[1]} dimensions cannot be divided by 8. "
                "Ask for another number of dimensions or another format.",
                param="dimensions",
            )
        bits = np.packbits(vectors > 0, axis=1)
        signed: NDArray[Any] = (bits.astype(np.int16) - 128).astype(np.int8)
        return bits if dtype is EmbeddingDtype.UBINARY else signed
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    largest = np.maximum(lengths, 1e-12) * (RANGE_SIGMAS / np.sqrt(vectors.shape[1]))
    levels = np.clip(np.rint(vectors * (127.0 / largest)), -127, 127)
    signed_levels: NDArray[Any] = levels.astype(np.int8)
    return signed_levels if dtype is EmbeddingDtype.INT8 else (levels + 128).astype(np.uint8)
