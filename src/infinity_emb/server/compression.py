"""Decompress request bodies, never beyond the limit, so that a small body cannot become a huge one."""

from __future__ import annotations

import importlib
import io
import zlib
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import InvalidInputError
from infinity_emb.server.errors import BodyTooLargeError, UnsupportedEncodingError

if TYPE_CHECKING:
    from collections.abc import Callable

_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_SUPPORTED = (
    "Supported are gzip, deflate and identity, and zstd where Python (3.14 on) or the package zstandard has it."
)


def decompress(body: bytes, encoding: str, limit_bytes: int) -> bytes:
    """Undo `content-encoding`.

    Args:
        body: As received.
        encoding: Value of the header.
        limit_bytes: Most bytes that may come out.

    Raises:
        BodyTooLargeError: More would come out.
        InvalidInputError: The bytes are not of that encoding.
        UnsupportedEncodingError: The encoding is unknown here.
    """
    name = encoding.strip().lower()
    if name in {"", "identity"}:
        return body
    opener = _OPENERS.get(name)
    if opener is None:
        raise UnsupportedEncodingError(f"Content-Encoding {name[:40]!r} is not supported. {_SUPPORTED}")
    result = opener(body, limit_bytes)
    if len(result) > limit_bytes:
        raise too_large(limit_bytes)
    return result


def too_large(limit_bytes: int) -> BodyTooLargeError:
    """The error for a body over the limit."""
    return BodyTooLargeError(
        f"The request body is larger than the {limit_bytes:,} bytes this server accepts. "
        "Send fewer items at once, or raise --max-body-bytes on the server."
    )


def _inflate(body: bytes, limit_bytes: int) -> bytes:
    """Gzip (several members too) and zlib; stops one byte past the limit."""
    pieces: list[bytes] = []
    left = limit_bytes + 1
    rest = body
    complete = True
    while rest and left > 0:
        machine = zlib.decompressobj(_GZIP_OR_ZLIB)
        try:
            piece = machine.decompress(rest, left)
        except zlib.error as error:
            raise InvalidInputError(f"The body is not valid gzip data: {error}.") from error
        left -= len(piece)
        pieces.append(piece)
        complete = machine.eof
        rest = machine.unused_data
    if left > 0 and not complete:
        raise InvalidInputError("The body is not valid gzip data: it ends too early.")
    return b"".join(pieces)


def _unzstd(body: bytes, limit_bytes: int) -> bytes:
    for module, open_stream in _ZSTD:
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        return _read_stream(open_stream(library, io.BytesIO(body)), limit_bytes)
    raise UnsupportedEncodingError(
        f"Content-Encoding 'zstd' is not available in this server. {_SUPPORTED} "
        "Send gzip instead, or install it with: pip install zstandard"
    )


def _read_stream(stream: Any, limit_bytes: int) -> bytes:
    try:
        return bytes(stream.read(limit_bytes + 1))
    except (EOFError, ValueError, OSError) as error:
        raise InvalidInputError("The body is not valid zstd data.") from error
    except Exception as error:
        # Both libraries raise a class of their own called ZstdError that is reachable only through the library.
        if type(error).__name__ != "ZstdError":
            raise
        raise InvalidInputError("The body is not valid zstd data.") from error


_ZSTD: tuple[tuple[str, Callable[[Any, io.BytesIO], Any]], ...] = (
    ("compression.zstd", lambda library, source: library.ZstdFile(source)),
    ("zstandard", lambda library, source: library.ZstdDecompressor().stream_reader(source)),
)
_OPENERS = {"gzip": _inflate, "x-gzip": _inflate, "deflate": _inflate, "zstd": _unzstd}
