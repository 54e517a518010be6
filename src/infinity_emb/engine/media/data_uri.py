"""Images and sounds that come inside the request, as base64 in a `data:` URI (RFC 2397)."""

from __future__ import annotations

import base64
import binascii
import re
from typing import NoReturn
from urllib.parse import unquote_to_bytes

from infinity_emb.engine.media.media import Media
from infinity_emb.engine.media.policy import MediaPolicy
from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal

MAX_PREFIX_CHARS = 256
_SPACE = re.compile(rb"[\t\n\r\f ]+")


def is_data_uri(text: str) -> bool:
    """Whether a text is meant as one."""
    return text[:5].lower() == "data:"


def read_data_uri(uri: str, kind: str, max_bytes: int) -> Media:
    """The bytes in a data URI.

    Args:
        uri: `data:image/png;base64,…`; letter case and line breaks do not matter, padding may be missing.
        kind: `image` or `audio`.
        max_bytes: Most bytes allowed.

    Raises:
        MediaRefusedError: Not such a URI, of another kind, broken base64, or too large.
    """
    comma = uri.find(",", 5, 5 + MAX_PREFIX_CHARS)
    if not is_data_uri(uri) or comma < 0:
        _refuse("It has no comma after the type.")
    content_type, *parameters = (part.strip().lower() for part in uri[5:comma].split(";"))
    if "base64" not in parameters:
        _refuse("Its content must be base64.")
    if not MediaPolicy.takes_type(content_type, kind):
        raise MediaRefusedError(
            Refusal.CONTENT_TYPE, f"A data URI of type {content_type[:80]!r} is no {kind}; send one of {kind}/…"
        )
    if (len(uri) - comma) * 3 // 4 > max_bytes + max_bytes // 16:  # line breaks may add a little
        raise MediaRefusedError(Refusal.TOO_LARGE, f"The data URI holds more than the {max_bytes} bytes allowed.")
    content = _decode(uri[comma + 1 :])
    if not content:
        _refuse("It is empty.")
    if len(content) > max_bytes:
        raise MediaRefusedError(Refusal.TOO_LARGE, f"The data URI holds more than the {max_bytes} bytes allowed.")
    return Media(content, content_type)


def _decode(text: str) -> bytes:
    if not text.isascii():
        _refuse("Its base64 holds characters outside ASCII.")
    raw = unquote_to_bytes(text) if "%" in text else text.encode("ascii")
    raw = _SPACE.sub(b"", raw)
    raw += b"=" * (-len(raw) % 4)
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error as error:
        raise MediaRefusedError(Refusal.DATA_URI, f"The data URI cannot be read: {error}.") from error


def _refuse(reason: str) -> NoReturn:
    raise MediaRefusedError(
        Refusal.DATA_URI, f"The data URI cannot be read: {reason} Its form is data:<type>;base64,<content>."
    )
