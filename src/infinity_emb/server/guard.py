"""Stop waiting for an engine when the client has left, the time limit has passed or the server stops (hot path).

Our own connections tell when they end. Those of other ASGI servers have to be watched, which costs a task, so it starts
only for requests that take longer than `WATCH_AFTER_S`.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from infinity_emb.errors import DeadlineExceededError, InfinityError, NotReadyError
from infinity_emb.server.errors import ClientGoneError
from infinity_emb.server.lifecycle import LOADING_RETRY_S

if TYPE_CHECKING:
    from types import TracebackType

    from infinity_emb.server.request import Request

WATCH_AFTER_S = 0.02


class InFlight:
    """The requests that wait for an engine, so that a server that stops can wait for them."""

    def __init__(self) -> None:
        self._guards: set[Guard] = set()
        self._idle: asyncio.Future[None] | None = None

    def add(self, guard: Guard) -> None:
        """A request begins to wait."""
        self._guards.add(guard)

    def remove(self, guard: Guard) -> None:
        """A request waits no longer."""
        self._guards.discard(guard)
        if self._idle is not None and not self._guards and not self._idle.done():
            self._idle.set_result(None)

    def snapshot(self) -> list[dict[str, object]]:
        """Which they are, for operators."""
        return [guard.describe() for guard in self._guards]

    async def finish(self, grace_s: float) -> None:
        """Wait until none is left; what is left after the grace period is answered with an error."""
        if self._guards:
            self._idle = asyncio.get_running_loop().create_future()
            await asyncio.wait({self._idle}, timeout=grace_s)
        for guard in list(self._guards):
            guard.stop()


class Guard:
    """Cancels the task that entered it, and turns that cancellation into an error that says why."""

    __slots__ = ("_deadline", "_in_flight", "_reason", "_request", "_task", "_watch_timer", "_watcher")

    def __init__(self, request: Request, in_flight: InFlight) -> None:
        self._request = request
        self._in_flight = in_flight
        self._watcher: asyncio.Task[None] | None = None
        self._watch_timer: asyncio.TimerHandle | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._reason: InfinityError | None = None

    def __enter__(self) -> None:
        self._in_flight.add(self)
        exchange = self._request.exchange
        if exchange is not None:
            self._task = exchange.task
            exchange.watch(self._leave)
        else:
            self._task = asyncio.current_task()
            self._watch_timer = asyncio.get_running_loop().call_later(WATCH_AFTER_S, self._start_watching)
        deadline_s = self._request.deadline_s
        if deadline_s is not None:
            self._deadline = asyncio.get_running_loop().call_later(
                max(0.0, deadline_s - time.monotonic()), self._expire
            )

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._in_flight.remove(self)
        exchange = self._request.exchange
        if exchange is not None:
            exchange.watch(None)
        elif self._watch_timer is not None:
            self._watch_timer.cancel()
        if self._deadline is not None:
            self._deadline.cancel()
        if self._watcher is not None:
            self._watcher.cancel()
        if not isinstance(error, asyncio.CancelledError) or self._reason is None:
            return
        uncancel = getattr(self._task, "uncancel", None)  # Python 3.11 on
        if uncancel is not None:
            uncancel()
        raise self._reason from error

    def describe(self) -> dict[str, object]:
        """Request id, path, and seconds until its time limit."""
        request = self._request
        left_s = None if request.deadline_s is None else round(request.deadline_s - time.monotonic(), 3)
        return {"request_id": request.request_id, "path": request.path[:200], "deadline_in_s": left_s}

    def stop(self) -> None:
        """The server stops and cannot wait any longer."""
        self._cancel(NotReadyError("The server stopped before the work was done.", retry_after_s=LOADING_RETRY_S))

    def _start_watching(self) -> None:
        self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass  # further body pieces after the end of the body: none are expected, none matter
        self._leave()

    def _leave(self) -> None:
        self._cancel(ClientGoneError("The client left before the answer."))

    def _expire(self) -> None:
        self._cancel(
            DeadlineExceededError(
                "The time limit of this request passed before the work was done; nothing of it is still running."
            )
        )

    def _cancel(self, reason: InfinityError) -> None:
        """Cancel once; the first reason counts."""
        if self._reason is None and self._task is not None:
            self._reason = reason
            self._task.cancel()
