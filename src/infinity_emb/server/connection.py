"""Bounds on what a connection may send before its request begins: bytes of headers, and time for them.

uvicorn's parser has neither. This protocol stands in front of it and passes everything on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn import Config
    from uvicorn.server import ServerState

HEADER_LIMIT_BYTES = 64 * 1024
HEADER_TIMEOUT_S = 20.0
# What a client may still send of a body after its request was answered (refused) early.
LEFTOVER_LIMIT_BYTES = 8 * 1024 * 1024

_REFUSAL = b"HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_TOO_LARGE = _REFUSAL % b"431 Request Header Fields Too Large"
_TOO_SLOW = _REFUSAL % b"408 Request Timeout"


class BoundedProtocol(asyncio.Protocol):
    """One connection.

    Args:
        config: uvicorn's.
        server_state: uvicorn's.
        app_state: uvicorn's.
        _loop: The event loop.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._inner = HttpToolsProtocol(config, server_state, app_state, _loop)
        self._loop = self._inner.loop
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waiting_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The clock for the first request starts."""
        self._transport = transport  # type: ignore[assignment]  # streams have read and write transports
        self._inner.connection_made(transport)  # type: ignore[arg-type]  # as above
        self._timer = self._loop.call_later(HEADER_TIMEOUT_S, self._refuse, _TOO_SLOW)

    def data_received(self, data: bytes) -> None:
        """Pass on, then look whether a request has begun."""
        inner = self._inner
        before = inner.cycle
        idle = before is None or before.response_complete
        inner.data_received(data)
        if not idle:
            return
        if inner.cycle is not before:
            self._waiting_bytes = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            return
        self._waiting_bytes += len(data)
        if self._waiting_bytes > (HEADER_LIMIT_BYTES if before is None else LEFTOVER_LIMIT_BYTES):
            self._refuse(_TOO_LARGE)
        elif self._timer is None:
            self._timer = self._loop.call_later(HEADER_TIMEOUT_S, self._refuse, _TOO_SLOW)

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing waits any longer."""
        if self._timer is not None:
            self._timer.cancel()
        self._inner.connection_lost(exc)

    def eof_received(self) -> None:
        """Pass on."""
        self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on."""
        self._inner.resume_writing()

    def _refuse(self, answer: bytes) -> None:
        """Say why, and close."""
        self._timer = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)
            self._transport.close()
