"""Work in a thread that nobody has to wait for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from infinity_emb.server.aside import aside


def test_what_the_work_returns_or_raises_comes_back():
    def fails():
        raise ValueError("no")

    assert asyncio.run(aside(lambda: threading.current_thread().name, "beside")) == "beside"
    with pytest.raises(ValueError, match="no"):
        asyncio.run(aside(fails, "beside"))


def test_whoever_stops_waiting_leaves_the_work_running():
    may_end, ended = threading.Event(), threading.Event()

    def work():
        may_end.wait(30)
        ended.set()

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(aside(work, "beside"), 0.001)

    asyncio.run(main())
    (thread,) = [one for one in threading.enumerate() if one.name == "beside"]
    assert thread.daemon
    may_end.set()
    thread.join(30)
    assert ended.is_set()
