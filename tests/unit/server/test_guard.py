from __future__ import annotations

import asyncio

import pytest

from infinity_emb.errors import DeadlineExceededError, NotReadyError
from infinity_emb.server.errors import ClientGoneError
from infinity_emb.server.guard import Guard, InFlight
from infinity_emb.server.request import Request


class Connection:
    """ASGI's receive: nothing until the client leaves."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self):
        await self.left.wait()
        return {"type": "http.disconnect"}


def request_on(connection: Connection, timeout: bytes | None = None) -> Request:
    headers = [] if timeout is None else [(b"x-request-timeout", timeout)]
    request = Request({"method": "POST", "path": "/", "headers": headers}, connection.receive)
    request.start_clock(None)
    return request


async def forever(started: asyncio.Event) -> None:
    started.set()
    await asyncio.Event().wait()


async def guarded(request: Request, in_flight: InFlight, started: asyncio.Event) -> None:
    with Guard(request, in_flight):
        await forever(started)


def test_a_client_that_leaves_stops_the_work():
    async def main():
        connection, in_flight, started = Connection(), InFlight(), asyncio.Event()
        task = asyncio.create_task(guarded(request_on(connection), in_flight, started))
        await started.wait()
        connection.left.set()
        with pytest.raises(ClientGoneError):
            await task

    asyncio.run(main())


def test_the_time_limit_of_the_request_stops_the_work():
    async def main():
        with pytest.raises(DeadlineExceededError):
            await guarded(request_on(Connection(), b"0.01"), InFlight(), asyncio.Event())

    asyncio.run(main())


def test_a_cancellation_from_outside_stays_one():
    async def main():
        started = asyncio.Event()
        task = asyncio.create_task(guarded(request_on(Connection()), InFlight(), started))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_work_that_ends_in_time_leaves_nothing_behind():
    async def main():
        in_flight = InFlight()
        with Guard(request_on(Connection(), b"5"), in_flight):
            pass
        await in_flight.finish(0.0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_stop_waits_for_work_in_flight():
    async def main():
        in_flight, started, release = InFlight(), asyncio.Event(), asyncio.Event()

        async def work() -> str:
            with Guard(request_on(Connection()), in_flight):
                started.set()
                await release.wait()
            return "done"

        task = asyncio.create_task(work())
        await started.wait()
        finishing = asyncio.create_task(in_flight.finish(60.0))
        release.set()
        await finishing
        assert task.done()
        assert task.result() == "done"

    asyncio.run(main())


def test_work_that_outlives_the_grace_period_is_answered_with_503():
    async def main():
        in_flight, started = InFlight(), asyncio.Event()
        task = asyncio.create_task(guarded(request_on(Connection()), in_flight, started))
        await started.wait()
        await in_flight.finish(0.01)
        with pytest.raises(NotReadyError):
            await task

    asyncio.run(main())
