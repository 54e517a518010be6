"""Watches the replicas of one model from a thread of its own, so that no dead or hung worker goes unanswered."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.scheduler.dispatcher import Dispatcher
    from infinity_emb.scheduler.replica import Replica


class Supervisor:
    """Runs between `start` and `stop`; a death wakes it at once, hangs are looked for every `interval_s`.

    Args:
        dispatcher: Refuses requests while no replica can compute.
        replicas: What is watched.
        interval_s: Time between two looks; at least 1 s.
    """

    def __init__(self, dispatcher: Dispatcher, replicas: Sequence[Replica], interval_s: float = 5.0) -> None:
        self._dispatcher = dispatcher
        self._replicas = replicas
        self._interval_s = max(1.0, interval_s)
        self._wake = threading.Event()
        self._stopping = False
        self._suspended = False
        self._thread = threading.Thread(target=self._main, name="infinity-supervisor", daemon=True)

    def start(self) -> None:
        """Start the replicas and begin to watch them."""
        for replica in self._replicas:
            replica.start(self._wake.set)
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """End the watch; the workers end when the dispatcher closes."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout_s)

    @property
    def alive(self) -> bool:
        """Whether any replica can compute."""
        return any(replica.alive for replica in self._replicas)

    @property
    def restarts(self) -> int:
        """How often a worker was replaced."""
        return sum(replica.restarts for replica in self._replicas)

    def look(self, now_s: float) -> None:
        """Check every replica once; refuse requests while none can compute."""
        for replica in self._replicas:
            replica.check(now_s)
        if self.alive:
            if self._suspended:
                self._suspended = False
                self._dispatcher.resume()
            return
        self._suspended = True
        wait_s = min(replica.next_try_s() for replica in self._replicas) - now_s
        self._dispatcher.suspend(
            "The model cannot compute now: its worker died or hangs, and is being restarted.",
            retry_after_s=max(1, math.ceil(max(wait_s, 0.0))),
        )

    def _main(self) -> None:
        while True:
            self._wake.clear()
            if self._stopping:
                return
            now_s = time.monotonic()
            self.look(now_s)
            self._wake.wait(self._pause_s(now_s))

    def _pause_s(self, now_s: float) -> float:
        """Until the next look: sooner if a replica may be restarted before that."""
        tries = [replica.next_try_s() - now_s for replica in self._replicas if not replica.alive]
        return min([self._interval_s, *(max(try_s, 1.0) for try_s in tries)])
