"""One place for a worker: replaces it when it died or hangs, and says truthfully whether it can compute."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from infinity_emb.errors import NotReadyError
from infinity_emb.scheduler.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.scheduler.dispatcher import Dispatcher
    from infinity_emb.scheduler.runner import Runner

_log = logging.getLogger("infinity_emb")

HANG_LIMIT_S = 120.0
BACKOFF_MAX_S = 60.0
# A worker that lived this long since its last restart is restarted without delay again.
STEADY_S = 60.0


class Replica:
    """A worker and its successors; `check` is called from one thread.

    Args:
        name: Of the worker threads.
        dispatcher: The waiting line.
        runner: What the first worker drives. A worker that died leaves it to the next one.
        renew: Loads a fresh runner, for when the old one hangs; None waits for it to come back.
        hang_limit_s: How long one batch may compute.

    Attributes:
        restarts: How often the worker was replaced.
    """

    def __init__(
        self,
        name: str,
        dispatcher: Dispatcher,
        runner: Runner,
        *,
        renew: Callable[[], Runner] | None = None,
        hang_limit_s: float = HANG_LIMIT_S,
    ) -> None:
        self._name = name
        self._dispatcher = dispatcher
        self._runner = runner
        self._renew = renew
        self._hang_limit_s = hang_limit_s
        self._on_death: Callable[[], None] | None = None
        self._worker = Worker(name, dispatcher, runner)
        self._hung: Worker | None = None
        self._former: list[Worker] = []
        self._restarted_s = float("-inf")
        self._delay_s = 0.0
        self.restarts = 0

    def start(self, on_death: Callable[[], None]) -> None:
        """Begin to compute; `on_death` is told from the thread of a worker that died."""
        self._on_death = on_death
        self._worker = Worker(self._name, self._dispatcher, self._runner, on_death)
        self._worker.start()

    @property
    def alive(self) -> bool:
        """Whether the worker is there and its batch has not been computing for too long."""
        return self._worker.alive and self._worker.busy_s() <= self._hang_limit_s

    def busy_s(self) -> float:
        """How long the current batch has been computing."""
        return self._worker.busy_s()

    def next_try_s(self) -> float:
        """`time.monotonic()` value before which the worker is not replaced."""
        return self._restarted_s + self._delay_s

    def join(self, timeout_s: float) -> bool:
        """Wait for the worker's thread; False if it is still busy."""
        return self._worker.join(timeout_s)

    def abandon(self, error: Exception) -> None:
        """Answer what the worker holds with an error."""
        self._worker.abandon(error)

    def check(self, now_s: float) -> None:
        """Answer for a worker that hangs; replace one that died, or that hangs if there is a fresh runner for it."""
        self._look_at_former()
        if self.alive:
            if now_s - self._restarted_s > STEADY_S:
                self._delay_s = 0.0
            return
        hangs = self._worker.alive
        if hangs:
            if self._hung is not self._worker:
                _log.critical("%s has computed one batch for %.0f s; giving it up", self._name, self._worker.busy_s())
                self._hung = self._worker
            self._worker.abandon(_hung_error())
        if now_s < self.next_try_s() or (hangs and self._renew is None):
            return
        self._replace(now_s, hangs=hangs)

    def _look_at_former(self) -> None:
        """Answer for those replaced: one may have come back while the next was loaded, taken more and hung again."""
        self._former = [worker for worker in self._former if worker.alive]
        for worker in self._former:
            if worker.busy_s() > self._hang_limit_s:
                worker.abandon(_hung_error())

    def _replace(self, now_s: float, *, hangs: bool) -> None:
        self._restarted_s = now_s
        self._delay_s = min(BACKOFF_MAX_S, max(1.0, 2.0 * self._delay_s))
        if hangs and self._renew is not None:
            try:
                self._runner = self._renew()
            except Exception as error:  # noqa: BLE001 - foreign library; told, and tried again after the delay
                _log.critical("%s cannot be brought up again: %s", self._name, error, exc_info=error)
                return
            self._worker.retire()
            self._former.append(self._worker)
            self._hung = None  # it holds the old model
        self._worker = Worker(self._name, self._dispatcher, self._runner, self._on_death)
        self.restarts += 1
        _log.warning("%s restarted (%d times so far)", self._name, self.restarts)
        self._worker.start()


def _hung_error() -> NotReadyError:
    return NotReadyError("The model hung while it computed this request.", retry_after_s=1)
