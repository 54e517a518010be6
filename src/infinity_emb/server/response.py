"""An answer before it is sent (hot path: one slotted object, bytes only)."""

from __future__ import annotations

from typing import Any

import orjson

JSON_TYPE = b"application/json"
_DUMP_OPTIONS = orjson.OPT_SERIALIZE_NUMPY

Headers = list[tuple[bytes, bytes]]


class Response:
    """Status, body and headers of one answer.

    Attributes:
        status: HTTP status.
        body: The whole body.
        headers: Raw header pairs beyond content type and length.
        content_type: Value of that header; empty leaves it out.
    """

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self, body: bytes, *, status: int = 200, content_type: bytes = JSON_TYPE, headers: Headers | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.content_type = content_type
        self.headers: Headers = [] if headers is None else headers


def json_response(value: Any, *, status: int = 200, headers: Headers | None = None) -> Response:
    """Write a value, NumPy arrays included, as JSON; float32 in its shortest exact form."""
    return Response(orjson.dumps(value, option=_DUMP_OPTIONS), status=status, headers=headers)
