"""One connection: whose turn it is, how long it may wait, and every answer in one piece (hot path).

It stands where uvicorn's own protocol would, and bounds what a client may send before its request begins: bytes of
headers, and time for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import httptools

from infinity_emb.server.head import head_of
from infinity_emb.server.reader import RequestReader
from infinity_emb.server.request import Request

if TYPE_CHECKING:
    from uvicorn.server import ServerState

    from infinity_emb.server.app import Application
    from infinity_emb.server.exchange import Exchange
    from infinity_emb.server.response import Response

HEADER_LIMIT_BYTES = 64 * 1024
HEADER_TIMEOUT_S = 20.0
KEEP_ALIVE_S = 75.0  # longer than the 60 s after which common proxies drop an idle connection
# What a client may still send of a body after its request was answered (refused) early.
LEFTOVER_LIMIT_BYTES = 8 * 1024 * 1024
# How long a client that is refused may go on sending before it is cut off.
LINGER_S = 1.0
# Up to here a copy of the body behind the head is cheaper than a second buffer.
_COPIED_BYTES = 16 * 1024

_REFUSAL = b"HTTP/1.1 %s\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
_NO_HTTP = _REFUSAL % b"400 Bad Request"
_TOO_LARGE = _REFUSAL % b"431 Request Header Fields Too Large"
_TOO_SLOW = _REFUSAL % b"408 Request Timeout"


class Connection(asyncio.Protocol):
    """One client; its requests are answered one after the other, in the order they came.

    Args:
        application: Answers.
        server_state: uvicorn's: open connections, running tasks, the headers of every answer.
        _loop: The event loop.
        _: Whatever else uvicorn passes to a protocol.
    """

    def __init__(
        self,
        application: Application,
        server_state: ServerState,
        _loop: asyncio.AbstractEventLoop | None = None,
        **_: Any,
    ) -> None:
        self._application = application
        self._state = server_state
        self._loop = _loop or asyncio.get_running_loop()
        self._reader = RequestReader(self)
        self._transport: asyncio.Transport
        self._current: Exchange | None = None
        self._queue: deque[Exchange] = deque()
        self._last_words: bytes | None = None
        self._reading = True
        self._writable: asyncio.Future[None] | None = None
        # The next head must be complete by then; None while a request is in progress.
        self._deadline_s: float | None = None
        self._hurried = True  # the deadline is that of a head that is expected now, not that of an idle connection
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The clock for the first request starts."""
        self._transport = transport  # type: ignore[assignment]  # streams have read and write transports
        self._state.connections.add(self)  # type: ignore[arg-type]  # it knows its own protocols only
        self._expect_head(HEADER_TIMEOUT_S)

    def connection_lost(self, _: Exception | None) -> None:
        """The client has left; what is in progress is for nobody."""
        self._state.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._queue.clear()
        self.resume_writing()
        if self._current is not None:
            self._current.end()

    def data_received(self, data: bytes) -> None:
        """Read, then let the first unanswered request begin."""
        if self._last_words is not None:
            return
        reader = self._reader
        try:
            reader.feed(data)
        except httptools.HttpParserError:
            self._refuse(_NO_HTTP)
        else:
            if reader.stalled_bytes > HEADER_LIMIT_BYTES or reader.leftover_bytes > LEFTOVER_LIMIT_BYTES:
                self._refuse(_TOO_LARGE)
        current = self._current
        if current is None:
            if not self._hurried and self._last_words is None:
                self._hurried = True
                self._expect_head(HEADER_TIMEOUT_S)
        elif current.task is None and not current.over:
            self._start(current)

    def begin(self, exchange: Exchange) -> None:
        """The head of a request is complete."""
        if self._current is None:
            self._deadline_s = None
            self._current = exchange
        else:
            self._queue.append(exchange)
            self.pause_reading()

    def write(self, data: bytes) -> None:
        """Send bytes, unless the connection closes already."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def pause_reading(self) -> None:
        """Let the client wait."""
        if self._reading and not self._transport.is_closing():
            self._reading = False
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, unless requests wait for their turn."""
        if not self._reading and not self._queue and not self._transport.is_closing():
            self._reading = True
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        """The client reads slower than it is written to."""
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        """It has caught up."""
        writable, self._writable = self._writable, None
        if writable is not None and not writable.done():
            writable.set_result(None)

    def shutdown(self) -> None:
        """The server stops: close when what is in progress is answered."""
        if self._current is None:
            self._transport.close()
        else:
            (self._queue[-1] if self._queue else self._current).keep_alive = False

    def _start(self, exchange: Exchange) -> None:
        exchange.task = self._loop.create_task(self._run(exchange))
        self._state.tasks.add(exchange.task)

    async def _run(self, exchange: Exchange) -> None:
        try:
            await self._application.serve(Request(exchange.scope, exchange.receive, exchange), self._answer)
        finally:
            self._state.tasks.discard(exchange.task)
            if not exchange.over:  # a bug, or the server does not wait any longer
                self._transport.close()

    async def _answer(self, request: Request, response: Response) -> None:
        """Send the answer to the request whose turn it is."""
        exchange = self._current
        while self._writable is not None:
            await self._writable
        if exchange is None or exchange.over:
            return
        head = head_of(response, self._state.default_headers, keep_alive=exchange.keep_alive)
        exchange.watch(None)
        exchange.end()
        self._state.total_requests += 1
        if request.method == "HEAD":
            self._transport.write(head)
        elif len(response.body) < _COPIED_BYTES:
            self._transport.write(head + response.body)
        else:
            self._transport.writelines((head, response.body))
        if exchange.keep_alive:
            self._next()
        elif exchange.complete:
            self._transport.close()
        else:
            self._close_with(b"")

    def _next(self) -> None:
        """The turn of the next request, if one has come."""
        if self._queue:
            self._current = self._queue.popleft()
            self._start(self._current)
            return
        self._current = None
        if self._last_words is not None:
            self._close_with(self._last_words)
            return
        self._hurried = False
        self._expect_head(KEEP_ALIVE_S)
        if not self._reading:
            self.resume_reading()

    def _refuse(self, answer: bytes) -> None:
        """What comes in cannot be read: say so when the requests before it are answered, and close."""
        if self._queue and not self._queue[-1].complete:
            self._queue.pop()
        current = self._current
        if current is not None and (current.complete or self._queue):
            self._last_words = answer
            return
        self._close_with(answer)
        if current is not None:
            current.end()

    def _close_with(self, answer: bytes) -> None:
        """Say it, and close when the client has left, or soon.

        A socket that is closed while something lies there unread makes the kernel take the answer back, so what still
        comes is read and dropped for a while (RFC 9112, 9.6).
        """
        self._last_words = answer
        if self._transport.is_closing():
            return
        if answer:
            self._transport.write(answer)
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self.resume_reading()
        self._hurried = False
        self._expect_head(LINGER_S)

    def _expect_head(self, wait_s: float) -> None:
        """The next head must be complete within this time."""
        deadline_s = self._deadline_s = self._loop.time() + wait_s
        timer = self._timer
        # a timer that fires too early is set again, so that a request costs no timer
        if timer is None or timer.when() > deadline_s:
            if timer is not None:
                timer.cancel()
            self._timer = self._loop.call_at(deadline_s, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._timer = None
        deadline_s = self._deadline_s
        if deadline_s is None:
            return
        if deadline_s > self._loop.time():
            self._timer = self._loop.call_at(deadline_s, self._look_at_clock)
        elif self._hurried:
            self._close_with(_TOO_SLOW)
        else:
            self._transport.close()
