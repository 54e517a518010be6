"""Let web pages of any origin call the server (`--permissive-cors`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.server.response import Response

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Headers

_METHODS = b"GET, POST, HEAD, OPTIONS"
_EXPOSED = b"x-request-id, x-truncated, x-model-fingerprint, retry-after, traceresponse"


def is_preflight(request: Request) -> bool:
    """A browser asks what it may send."""
    return (
        request.method == "OPTIONS"
        and b"origin" in request.headers
        and (b"access-control-request-method" in request.headers)
    )


def cors_headers(request: Request) -> Headers:
    """Headers that let the asking page read an answer; none if no page asks."""
    origin = request.headers.get(b"origin")
    if origin is None:
        return []
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-allow-credentials", b"true"),
        (b"access-control-expose-headers", _EXPOSED),
        (b"vary", b"Origin"),
    ]


def preflight_response(request: Request) -> Response:
    """Allow what was asked for."""
    asked = request.headers.get(b"access-control-request-headers", b"*")
    return Response(
        b"",
        status=204,
        content_type=b"",
        headers=[
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", asked),
            (b"access-control-max-age", b"600"),
        ],
    )
