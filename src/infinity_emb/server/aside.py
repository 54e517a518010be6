"""Blocking work beside the event loop, in a thread that nobody has to wait for, not even the end of the process."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


async def aside(work: Callable[[], T], name: str) -> T:
    """What `work` returns or raises; whoever stops waiting leaves it running.

    An executor's thread is joined when Python ends, so work that hangs would keep the process alive.
    """
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on a waiter that leaves cannot cancel it

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, who raises it
            future.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)
