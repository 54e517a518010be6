"""Tells what kind of file some bytes are by how they begin, so that only the few that are read reach a decoder."""

from __future__ import annotations

# What is decoded. Other formats that the decoder's library knows stay out of reach: rarely used, rarely tested parsers.
READABLE = ("WAV", "FLAC", "OGG", "MP3", "AIFF")

_FIRST_BYTES: tuple[tuple[bytes, str], ...] = (
    (b"fLaC", "FLAC"),
    (b"OggS", "OGG"),
    (b"\x1aE\xdf\xa3", "Matroska or WebM"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "WMA"),
    (b"#!AMR", "AMR"),
    (b"caff", "CAF"),
    (b".snd", "AU"),
    (b"MThd", "MIDI"),
    (b"\x89PNG", "PNG, which is an image"),
    (b"\xff\xd8\xff", "JPEG, which is an image"),
    (b"GIF8", "GIF, which is an image"),
    (b"%PDF", "PDF"),
    (b"<", "HTML or XML"),
)


def container_of(data: bytes) -> str:
    """Name of the format; "" if it is not known. One of `READABLE` where it can be decoded."""
    if data[:3] == b"ID3":
        data = data[_tag_bytes(data) :]
    if data[:4] in {b"RIFF", b"RF64"} and data[8:12] == b"WAVE":
        return "WAV"
    if data[:4] == b"FORM" and data[8:12] in {b"AIFF", b"AIFC"}:
        return "AIFF"
    if data[4:8] == b"ftyp":
        return "MPEG-4 (M4A, AAC)"
    for start, name in _FIRST_BYTES:
        if data.startswith(start):
            return name
    return _by_frame_header(data)


def _by_frame_header(data: bytes) -> str:
    """Streams that begin with a frame: eleven bits set, then version and layer; layer 0 is how AAC writes it."""
    if len(data) < 2 or data[0] != 0xFF or data[1] & 0xE0 != 0xE0:
        return ""
    return "MP3" if data[1] & 0x06 else "AAC"


def _tag_bytes(data: bytes) -> int:
    """Length of an ID3v2 tag: ten bytes, of which the last four say how many follow, seven bits each."""
    size = 0
    for byte in data[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size
