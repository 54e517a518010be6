"""One line for each request, if asked for: what was called, how it ended, how long it took; never what was sent."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response

logger = logging.getLogger("infinity_emb")


def log_request(request: Request, response: Response, handler: str, took_s: float) -> None:
    """Write the line; `handler` is the path as it is declared, since the one that was sent may hold anything."""
    key = request.grant.name if request.grant is not None else ""
    took_ms = round(took_s * 1000, 2)
    logger.info(
        "%s %s %d in %.2f ms",
        request.method if handler != "none" else "OTHER",
        handler,
        response.status,
        took_ms,
        extra={
            "request_id": request.request_id,
            "method": request.method if handler != "none" else "OTHER",
            "handler": handler,
            "status": response.status,
            "took_ms": took_ms,
            "bytes_in": len(request.body),
            "bytes_out": len(response.body),
            "key": key,
        },
    )
