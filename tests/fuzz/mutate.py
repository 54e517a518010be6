"""A small mutation fuzzer: flips, cuts, copies and splices bytes, and puts in what parsers have stumbled over."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

TOKENS = (
    b"null", b"true", b"-1", b"0", b"1e999", b"NaN", b"18446744073709551616", b"9" * 400, b'""', b"[]", b"{}", b"[" * 2000,
    b'{"a":' * 500, b"\\ud83d", b"\\u0000", b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"../", b"/etc/passwd",
    b"\r\n", b";base64,", b"data:", b"%00", b"%", b"http://", b"@", b"[::1]", b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b'"input"', b'"dimensions"', b'"hidden_size"', b'"data_offsets"',
)  # fmt: skip


def mutated(seeds: Sequence[bytes], chance: random.Random, most_bytes: int = 20_000) -> bytes:
    """One input near one of the seeds."""
    data = bytearray(chance.choice(seeds))
    for _ in range(chance.choice((1, 1, 2, 3, 6, 12))):
        _change(data, seeds, chance)
    return bytes(data[:most_bytes])


def _change(data: bytearray, seeds: Sequence[bytes], chance: random.Random) -> None:
    place = chance.randrange(len(data) + 1)
    length = min(chance.choice((1, 1, 2, 4, 8, 32)), len(data) - place)
    kind = chance.randrange(8)
    if kind == 0 and place < len(data):
        data[place] ^= 1 << chance.randrange(8)
    elif kind == 1 and place < len(data):
        data[place] = chance.randrange(256)
    elif kind == 2:
        del data[place : place + length]
    elif kind == 3:
        data[place:place] = data[place : place + length] * chance.choice((1, 2, 50))
    elif kind in {4, 5}:
        data[place : place + chance.choice((0, length))] = chance.choice(TOKENS)
    elif kind == 6:
        other = chance.choice(seeds)
        start = chance.randrange(len(other) + 1)
        data[place:place] = other[start : start + chance.choice((4, 16, 64))]
    elif kind == 7:
        del data[place:]
