"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from infinity_emb.errors import NotReadyError

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

Result = TypeVar("Result")
FINISH_TIMEOUT_S = 1.0


class BackgroundLoop:
    """Runs until `stop`; waits on the loop itself, never polls."""

    def __init__(self, name: str = "infinity-loop") -> None:
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Schedule a coroutine; its result comes through the future.

        Raises:
            NotReadyError: The loop has been stopped.
        """
        with self._lock:  # what is scheduled before the loop stops is also finished
            if not self._stopped:
                return asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        coroutine.close()
        raise NotReadyError("This engine has been stopped; make a new one.")

    def stop(self) -> None:
        """Let the coroutines finish, then end the loop and its thread; safe to call twice."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._thread is not threading.current_thread():  # the garbage collector may call from anywhere
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(_finish_tasks())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()


async def _finish_tasks() -> None:
    """Give running coroutines a moment to end (their engine has answered them), cancel those that do not."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=FINISH_TIMEOUT_S)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
