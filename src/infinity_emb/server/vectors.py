"""Write vectors straight from their array: numbers, base64 or raw bytes (hot path)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from pybase64 import b64encode

from infinity_emb.server.arrow import arrow_stream
from infinity_emb.server.response import Response
from infinity_emb.types import EmbeddingDtype

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.server.options import OutputForm
    from infinity_emb.server.request import Request
    from infinity_emb.types import EmbedResult

_FLOAT32 = np.dtype("<f4")
_NPY = b"application/x-npy"
_RAW = b"application/octet-stream"
_ARROW = b"application/vnd.apache.arrow.stream"
_JSON = frozenset((b"", b"*/*", b"application/json"))  # what most clients accept


def finished(result: EmbedResult, dtype: EmbeddingDtype, engine: AsyncEmbeddingEngine) -> NDArray[Any]:
    """The vectors in the wanted number format, contiguous and little-endian."""
    vectors = result.vectors
    if dtype is not EmbeddingDtype.FLOAT32:
        return np.ascontiguousarray(engine.quantize(vectors, dtype))
    return np.ascontiguousarray(vectors, _FLOAT32)


def rows(vectors: NDArray[Any], *, base64: bool) -> list[Any]:
    """One JSON value a vector: a base64 string, or the row itself, which the JSON writer reads."""
    if base64:
        return [row.decode("ascii") for row in base64_rows(vectors)]
    return list(vectors)


def base64_rows(vectors: NDArray[Any]) -> list[bytes]:
    """Each vector as base64; encoded in one go where no vector ends inside a group of three bytes."""
    row_bytes = vectors.shape[1] * vectors.itemsize
    if row_bytes % 3:
        return [b64encode(row.data) for row in vectors]
    written = b64encode(vectors.data)
    step = row_bytes // 3 * 4
    return [written[start : start + step] for start in range(0, len(written), step)]


def binary_response(request: Request, vectors: NDArray[Any], form: OutputForm) -> Response | None:
    """The compact answer that `Accept` asks for, or None if it asks for JSON.

    `application/octet-stream` is the bare numbers, row after row (`; dtype=float16` halves them);
    `application/x-npy` is a NumPy file, `application/vnd.apache.arrow.stream` a record batch with one column.
    Shape and number format are in `x-embedding-shape` and `x-embedding-dtype`.
    """
    accept = request.headers.get(b"accept", b"")
    if accept in _JSON:
        return None
    kind, _, parameters = accept.partition(b",")[0].partition(b";")
    kind = kind.strip().lower()
    write = _WRITERS.get(kind)
    if write is None:
        return None
    if form.dtype is EmbeddingDtype.FLOAT32 and b"float16" in parameters:
        vectors = vectors.astype("<f2")
    shape = ",".join(str(length) for length in vectors.shape)
    return Response(
        write(vectors),
        content_type=kind,
        headers=[(b"x-embedding-shape", shape.encode()), (b"x-embedding-dtype", str(vectors.dtype).encode())],
    )


def _npy_bytes(vectors: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    npy.write_array(out, vectors, allow_pickle=False)
    return out.getvalue()


def _raw_bytes(vectors: NDArray[Any]) -> bytes:
    return vectors.tobytes()


_WRITERS = {_NPY: _npy_bytes, _RAW: _raw_bytes, _ARROW: arrow_stream}
