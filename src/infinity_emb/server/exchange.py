"""One request on a connection and its body as it arrives (hot path)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.server.connection import Connection

# A body that nobody reads yet may fill so much memory before the client has to wait.
UNREAD_LIMIT_BYTES = 64 * 1024
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Exchange:
    """From the end of a request's head to the end of its answer.

    Args:
        connection: Where it takes place.
        scope: What `Request` reads of ASGI's scope.
        keep_alive: Whether the client may send another request afterwards.
        expects_continue: The client sends the body only when asked to.

    Attributes:
        scope: As given.
        keep_alive: As given; the server clears it when it stops.
        complete: The whole body has arrived.
        task: Answers it; None before its turn.
        over: It was answered, or the client has left.
    """

    __slots__ = (
        "_connection",
        "_expects_continue",
        "_on_leave",
        "_pieces",
        "_read_to_end",
        "_unread_bytes",
        "_waiter",
        "complete",
        "keep_alive",
        "over",
        "scope",
        "task",
    )

    def __init__(
        self, connection: Connection, scope: dict[str, Any], *, keep_alive: bool, expects_continue: bool
    ) -> None:
        self.scope = scope
        self.keep_alive = keep_alive
        self.complete = False
        self.task: asyncio.Task[None] | None = None
        self.over = False
        self._connection = connection
        self._expects_continue = expects_continue
        self._pieces: list[bytes] = []
        self._unread_bytes = 0
        self._read_to_end = False
        self._waiter: asyncio.Future[None] | None = None
        self._on_leave: Callable[[], None] | None = None

    def add(self, piece: bytes) -> None:
        """A piece of the body has arrived."""
        self._pieces.append(piece)
        self._unread_bytes += len(piece)
        if self._unread_bytes > UNREAD_LIMIT_BYTES:
            self._connection.pause_reading()
        if self._waiter is not None:
            self._wake()

    def finish(self) -> None:
        """The body is complete."""
        self.complete = True
        if self._waiter is not None:
            self._wake()

    def end(self) -> None:
        """Nothing more is read: it was answered, or the client has left."""
        self.over = True
        on_leave, self._on_leave = self._on_leave, None
        if on_leave is not None:
            on_leave()
        if self._waiter is not None:
            self._wake()

    def watch(self, on_leave: Callable[[], None] | None) -> None:
        """Call this once if the client leaves before the answer; None calls nothing any more."""
        self._on_leave = on_leave
        if self.over and on_leave is not None:
            self.end()

    def take(self) -> bytes:
        """What of the body has arrived since the last call."""
        pieces = self._pieces
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        self._unread_bytes = 0
        self._read_to_end = self.complete
        return body

    async def receive(self) -> dict[str, Any]:
        """ASGI's `receive`: the next piece of the body; once that is read, the end of the exchange."""
        if self._expects_continue:
            self._expects_continue = False
            if not self.complete:
                self._connection.write(_CONTINUE)
        while not self.over:
            if self._pieces or (self.complete and not self._read_to_end):
                return {"type": "http.request", "body": self.take(), "more_body": not self.complete}
            self._connection.resume_reading()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return {"type": "http.disconnect"}

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
