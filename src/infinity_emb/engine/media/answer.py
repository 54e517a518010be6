"""Reads one HTTP answer: headers first, then never more bytes than allowed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from infinity_emb.engine.media.media import Media
from infinity_emb.engine.media.policy import MediaPolicy
from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal

if TYPE_CHECKING:
    from http.client import HTTPResponse

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PIECE_BYTES = 64 * 1024
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_INFLATED = frozenset({"gzip", "x-gzip", "deflate"})


def read_answer(answer: HTTPResponse, kind: str, max_bytes: int) -> Media:
    """The body of an answer that is no redirect.

    Raises:
        MediaRefusedError: Another status than 200, another type than asked for, too large, or cut off.
    """
    if answer.status != 200:
        raise MediaRefusedError(Refusal.STATUS, f"The host answered with status {answer.status}, not 200.")
    content_type = (answer.getheader("content-type") or "").partition(";")[0].strip().lower()
    if not MediaPolicy.takes_type(content_type, kind):
        raise MediaRefusedError(
            Refusal.CONTENT_TYPE, f"The host sent {content_type[:80]!r}, which is no {kind}; the URL must lead to one."
        )
    if answer.length is not None and answer.length > max_bytes:
        raise _too_large(max_bytes)
    encoding = (answer.getheader("content-encoding") or "identity").strip().lower()
    content = _read(answer, max_bytes) if encoding == "identity" else _inflate(answer, encoding, max_bytes)
    if answer.length:
        raise MediaRefusedError(Refusal.BROKEN_ANSWER, f"The answer ended {answer.length} bytes too early.")
    if not content:
        raise MediaRefusedError(Refusal.BROKEN_ANSWER, "The answer is empty.")
    return Media(content, content_type)


def _read(answer: HTTPResponse, max_bytes: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while piece := answer.read(_PIECE_BYTES):
        size += len(piece)
        if size > max_bytes:
            raise _too_large(max_bytes)
        pieces.append(piece)
    return b"".join(pieces)


def _inflate(answer: HTTPResponse, encoding: str, max_bytes: int) -> bytes:
    """Decompress piece by piece; nothing was asked to be compressed, but some stores keep files that way."""
    if encoding not in _INFLATED:
        raise MediaRefusedError(
            Refusal.CONTENT_ENCODING, f"The host sent content encoding {encoding[:40]!r}; identity and gzip are read."
        )
    stream = zlib.decompressobj(_GZIP_OR_ZLIB)
    pieces: list[bytes] = []
    room = max_bytes
    try:
        while piece := answer.read(_PIECE_BYTES):
            pieces.append(stream.decompress(piece, room + 1))
            room -= len(pieces[-1])
            if room < 0 or stream.unconsumed_tail:
                raise _too_large(max_bytes)
    except zlib.error as error:
        raise MediaRefusedError(Refusal.BROKEN_ANSWER, f"The compressed answer is broken: {error}.") from error
    if not stream.eof:
        raise MediaRefusedError(Refusal.BROKEN_ANSWER, "The compressed answer was cut off.")
    return b"".join(pieces)


def _too_large(max_bytes: int) -> MediaRefusedError:
    return MediaRefusedError(
        Refusal.TOO_LARGE, f"The file is larger than the {max_bytes} bytes allowed (--max-media-bytes)."
    )
