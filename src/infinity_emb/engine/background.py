"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from concurrent.futures import Future

Result = TypeVar("Result")


class BackgroundLoop:
    """Runs until `stop`; waits on the loop itself, never polls."""

    def __init__(self, name: str = "infinity-loop") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, coroutine: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Schedule a coroutine; its result comes through the future."""
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("This engine has been stopped; make a new one.")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def stop(self) -> None:
        """End the loop and its thread; safe to call twice."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
