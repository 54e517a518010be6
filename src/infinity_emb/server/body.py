"""Read a request body, never more than allowed and never waiting for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from infinity_emb.errors import InvalidInputError
from infinity_emb.server.compression import decompress, too_large
from infinity_emb.server.errors import ClientGoneError

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.settings import HttpSettings


async def read_body(request: Request, settings: HttpSettings) -> bytes:
    """The whole body, decompressed.

    Raises:
        BodyTooLargeError: Over the limit: by its declared length, while reading, or after decompression.
        ClientGoneError: The client left.
        InvalidInputError: The next piece did not come in time, or the encoding is broken.
    """
    limit_bytes = settings.max_body_bytes
    exchange = request.exchange
    if exchange is not None and exchange.complete:
        body = exchange.take()
    else:
        declared = request.headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit_bytes:
            raise too_large(limit_bytes)
        body = await _read_pieces(request, settings)
    if len(body) > limit_bytes:
        raise too_large(limit_bytes)
    encoding = request.headers.get(b"content-encoding")
    return body if encoding is None else decompress(body, encoding.decode("latin-1"), limit_bytes)


async def _read_pieces(request: Request, settings: HttpSettings) -> bytes:
    pieces: list[bytes] = []
    size_bytes = 0
    more = True
    while more and size_bytes <= settings.max_body_bytes:
        try:
            message = await asyncio.wait_for(request.receive(), settings.body_timeout_s)
        except asyncio.TimeoutError as error:
            raise InvalidInputError(
                f"The rest of the body did not arrive within {settings.body_timeout_s:g} s."
            ) from error
        if message["type"] == "http.disconnect":
            raise ClientGoneError("The client left while sending its body.")
        piece: bytes = message.get("body", b"")
        pieces.append(piece)
        size_bytes += len(piece)
        more = message.get("more_body", False)
    return b"".join(pieces)
