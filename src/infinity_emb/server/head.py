"""The head of an answer as bytes (hot path)."""

from __future__ import annotations

import functools
import http
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.server.response import Response

_FORBIDDEN = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def head_of(response: Response, common: list[tuple[bytes, bytes]], *, keep_alive: bool) -> bytes:
    """Status line, headers and the empty line behind them.

    Raises:
        ValueError: A header holds a control character, which would let it become two; this is a bug.
    """
    parts = [_status_line(response.status)]
    headers = response.headers
    if _FORBIDDEN.search(b"\t".join([value for _, value in headers])):
        raise ValueError(f"one of the headers {headers!r} holds a control character; this is a bug.")
    for name, value in headers:
        parts += (name, b": ", value, b"\r\n")
    for name, value in common:
        parts += (name, b": ", value, b"\r\n")
    parts.append(b"\r\n" if keep_alive else b"connection: close\r\n\r\n")
    return b"".join(parts)


@functools.cache
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n".encode()
