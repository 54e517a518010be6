"""As much of the FlatBuffers encoding as Arrow's metadata needs: parents first, children behind them."""

from __future__ import annotations

import struct
from typing import NamedTuple

_OFFSET = "I"
_MAX_ALIGNMENT_BYTES = 8


class Scalar(NamedTuple):
    """A number inside a table: `format` is a letter of the `struct` module."""

    format: str
    value: int


class Text(NamedTuple):
    """A string."""

    value: str


class Structs(NamedTuple):
    """A vector of structs, already packed, with 8-byte alignment."""

    packed: bytes
    length: int


class Table(NamedTuple):
    """A table: its fields in the order of the schema, None where one is absent."""

    fields: list[Scalar | Text | Structs | Table | Tables | None]


class Tables(NamedTuple):
    """A vector of tables."""

    items: list[Table]


def encode(root: Table) -> bytes:
    """The buffer of a root table."""
    out = bytearray(4)
    _patch(out, 0, _write(out, root))
    return bytes(out)


def _write(out: bytearray, value: Text | Structs | Table | Tables) -> int:
    """Append a value and return where it begins."""
    if isinstance(value, Table):
        return _write_table(out, value)
    if isinstance(value, Tables):
        _align(out, 4)
        start = len(out)
        out += struct.pack(f"<{len(value.items) + 1}I", len(value.items), *[0] * len(value.items))
        for index, item in enumerate(value.items):
            _patch(out, start + 4 * (index + 1), _write(out, item))
        return start
    if isinstance(value, Structs):
        while (len(out) + 4) % _MAX_ALIGNMENT_BYTES:
            out.append(0)
        start = len(out)
        out += struct.pack("<I", value.length) + value.packed
        return start
    raw = value.value.encode()
    _align(out, 4)
    start = len(out)
    out += struct.pack("<I", len(raw)) + raw + b"\0"
    return start


def _write_table(out: bytearray, table: Table) -> int:
    """The table of field places (vtable), the fields, then what the fields point to."""
    places: list[int] = []
    size = 4
    for field in table.fields:
        if field is None:
            places.append(0)
            continue
        width = struct.calcsize(field.format if isinstance(field, Scalar) else _OFFSET)
        size += -size % width
        places.append(size)
        size += width
    vtable = struct.pack(f"<{len(places) + 2}H", 2 * len(places) + 4, size, *places)
    while (len(out) + len(vtable)) % _MAX_ALIGNMENT_BYTES:
        out.append(0)
    out += vtable
    start = len(out)
    out += struct.pack("<i", len(vtable)) + bytes(size - 4)
    for field, place in zip(table.fields, places, strict=True):
        if isinstance(field, Scalar):
            struct.pack_into(f"<{field.format}", out, start + place, field.value)
        elif field is not None:
            _patch(out, start + place, _write(out, field))
    return start


def _patch(out: bytearray, place: int, target: int) -> None:
    """Offsets count from where they stand."""
    struct.pack_into("<I", out, place, target - place)


def _align(out: bytearray, width: int) -> None:
    out += bytes(-len(out) % width)
