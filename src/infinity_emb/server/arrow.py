"""Vectors as an Arrow IPC stream: one column `embedding` of fixed-size lists, one record batch.

Written by hand (Arrow columnar format 1.x, metadata version 5; FlatBuffers encoding), as the stream for one numeric
column is two short messages around the array's own bytes, and no library is needed for that.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.server.flatbuffer import Scalar, Structs, Table, Tables, Text, encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Field: TypeAlias = "Scalar | Structs | Table | Tables | Text | None"

_CONTINUATION = b"\xff\xff\xff\xff"
_END = _CONTINUATION + b"\x00\x00\x00\x00"
_VERSION_5 = Scalar("h", 4)
_SCHEMA, _RECORD_BATCH = 1, 3  # MessageHeader
_INT, _FLOATING_POINT, _FIXED_SIZE_LIST = 2, 3, 16  # Type
_PRECISION = {2: 0, 4: 1}  # half, single; by bytes
_ALIGNMENT_BYTES = 8


def arrow_stream(vectors: NDArray[Any]) -> bytes:
    """The stream for `[n, dim]` numbers: float16, float32, int8 or uint8."""
    count, dim = vectors.shape
    body = vectors.tobytes()
    padded = body + bytes(-len(body) % _ALIGNMENT_BYTES)
    return b"".join(
        [
            _message(_SCHEMA, _schema(vectors.dtype.kind, vectors.itemsize, dim), 0),
            _message(_RECORD_BATCH, _record_batch(count, dim, len(body)), len(padded)),
            padded,
            _END,
        ]
    )


def _message(kind: int, header: Table, body_bytes: int) -> bytes:
    """Length-prefixed metadata, padded so that the body starts aligned."""
    metadata = encode(Table([_VERSION_5, Scalar("B", kind), header, Scalar("q", body_bytes)]))
    metadata += bytes(-len(metadata) % _ALIGNMENT_BYTES)
    return _CONTINUATION + struct.pack("<i", len(metadata)) + metadata


def _schema(kind: str, item_bytes: int, dim: int) -> Table:
    if kind == "f":
        number, number_type = Table([Scalar("h", _PRECISION[item_bytes])]), _FLOATING_POINT
    else:
        number, number_type = Table([Scalar("i", 8 * item_bytes), Scalar("B", int(kind == "i"))]), _INT
    item = _field("item", number_type, number, [])
    column = _field("embedding", _FIXED_SIZE_LIST, Table([Scalar("i", dim)]), [item])
    return Table([Scalar("h", 0), Tables([column])])


def _field(name: str, kind: int, type_: Table, children: list[Table]) -> Table:
    """Name, nullable, type, dictionary (none), children."""
    fields: list[Field] = [Text(name), Scalar("B", 0), Scalar("B", kind), type_, None, Tables(children)]
    return Table(fields)


def _record_batch(count: int, dim: int, body_bytes: int) -> Table:
    """Nodes are (length, nulls) of list and item; buffers are (offset, length): both validities are left out."""
    nodes = struct.pack("<4q", count, 0, count * dim, 0)
    buffers = struct.pack("<6q", 0, 0, 0, 0, 0, body_bytes)
    return Table([Scalar("q", count), Structs(nodes, 2), Structs(buffers, 3)])
