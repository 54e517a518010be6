"""Hot path. The thread of one replica: collates one batch ahead while the current one computes.

The batch ahead is not a promise: if a better one has formed by the time the device is free, it is traded in, so a batch
taken early neither stays small under load nor makes an interactive request wait behind two bulk batches.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.errors import BackendError, InfinityError, NotReadyError, OutOfMemoryError
from infinity_emb.scheduler.memory import is_out_of_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.backends.base import Arrays, Pending
    from infinity_emb.scheduler.batch import Batch
    from infinity_emb.scheduler.dispatcher import Dispatcher
    from infinity_emb.scheduler.runner import Runner

_log = logging.getLogger("infinity_emb")

OUT_OF_MEMORY_RETRY_S = 5


@dataclass(slots=True)
class _Running:
    """A batch on the device, or one that failed to get there."""

    batch: Batch
    started_s: float
    pending: Pending | None
    error: Exception | None = None
    finished_s: float = 0.0


class Worker:
    """Drives one runner until the dispatcher closes.

    Args:
        name: Of the thread.
        dispatcher: Where batches come from and results go.
        runner: What computes them.
        on_death: Called from the dying thread, when all it held is answered.

    Attributes:
        died: The error that ended the thread, None while all is well.
    """

    def __init__(
        self, name: str, dispatcher: Dispatcher, runner: Runner, on_death: Callable[[], None] | None = None
    ) -> None:
        self._dispatcher = dispatcher
        self._runner = runner
        self._on_death = on_death
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)
        # Batches taken and not yet answered. Whoever pops a batch answers it: the thread itself, or `abandon`.
        self._held: dict[Batch, None] = {}
        self._retired = False
        self._busy_since_s: float | None = None
        self.died: BaseException | None = None

    def start(self) -> None:
        """Begin taking batches."""
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; False if it is still busy."""
        if self._thread is threading.current_thread():  # the garbage collector may stop an engine anywhere
            return True
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self.died is None and self._thread.is_alive()

    def busy_s(self) -> float:
        """How long the current batch has been computing; 0.0 if none is."""
        since_s = self._busy_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def abandon(self, error: Exception) -> None:
        """Answer what the thread holds, because it hangs or is gone; results that come later are dropped."""
        for batch in list(self._held):
            if self._claim(batch):
                self._dispatcher.reject(batch, error)

    def retire(self) -> None:
        """Take no further batch: another worker with a runner of its own has its place.

        The thread closes its runner when it comes back; before that nobody may touch it.
        """
        self._retired = True

    def _main(self) -> None:
        try:
            self._loop()
            if self._retired:
                self._runner.close()
        except BaseException as error:  # noqa: BLE001 - the boundary of a worker: whatever ends it is told and answered
            self.died = error
            _log.critical("%s died: %s", self._thread.name, error, exc_info=error)
            self.abandon(NotReadyError("The worker died while it computed this request.", retry_after_s=1))
            if self._on_death is not None:
                self._on_death()

    def _loop(self) -> None:
        running: _Running | None = None
        while True:
            ahead = None if self._retired else self._dispatcher.take(wait=running is None)
            if ahead is not None:
                self._held[ahead] = None
            if running is None:
                if ahead is None:
                    return
                running = self._launch(ahead)
                continue
            arrays = None if ahead is None else self._collate(ahead)
            outcome = self._finish(running)
            finished = running
            if isinstance(outcome, Exception):  # the device must be free before halves are tried on it
                self._isolate(finished.batch, outcome)
            chosen = None if ahead is None else self._exchange(ahead)
            running = None if chosen is None else self._launch(chosen, arrays if chosen is ahead else None)
            if not isinstance(outcome, Exception):
                self._complete(finished, outcome)

    def _exchange(self, ahead: Batch) -> Batch | None:
        if not self._claim(ahead):
            return None
        better = self._dispatcher.exchange(ahead)
        if better is not None:
            self._held[better] = None
        return better

    def _claim(self, batch: Batch) -> bool:
        """Whether the caller is the one to answer a batch; False if it was abandoned meanwhile."""
        return self._held.pop(batch, self) is None

    def _collate(self, batch: Batch) -> Arrays | Exception:
        try:
            return self._runner.collate(batch)
        except Exception as error:  # noqa: BLE001 - a bad item may break it; the batch is isolated like a failed forward
            return error

    def _launch(self, batch: Batch, arrays: Arrays | Exception | None = None) -> _Running:
        self._busy_since_s = started_s = time.monotonic()
        if arrays is None:
            arrays = self._collate(batch)
        if isinstance(arrays, Exception):
            return _Running(batch, started_s, None, arrays)
        try:
            self._runner.memory.check(batch.rows * batch.width)
            return _Running(batch, started_s, self._runner.start(arrays))
        except Exception as error:  # noqa: BLE001 - foreign library; answered through isolation
            return _Running(batch, started_s, None, error)

    def _finish(self, running: _Running) -> Arrays | Exception:
        pending, running.pending = running.pending, None  # its memory may be needed for the next try
        try:
            if pending is None:
                return running.error or BackendError("a batch has neither outputs nor an error; this is a bug.")
            return self._runner.finish(running.batch, pending)
        except Exception as error:  # noqa: BLE001 - foreign library; answered through isolation
            return error
        finally:
            running.finished_s = time.monotonic()
            self._busy_since_s = None

    def _isolate(self, batch: Batch, error: Exception) -> None:
        """Halve a failed batch until only the guilty items are left; everyone else gets their result."""
        if not self._claim(batch):
            return
        if len(batch.entries) == 1:
            _log.error("the model failed on one item: %s", error, exc_info=error)
            told = _item_error(batch, error)
            told.__cause__ = error  # for those who call the engine in their own process
            self._dispatcher.reject(batch, told)
            return
        if is_out_of_memory(error):
            traceback.clear_frames(error.__traceback__)  # they hold the arrays of the batch
            budget = self._dispatcher.shrink(batch)
            _log.warning(
                "a batch of %d x %d tokens is out of memory; at most %d from now on", batch.rows, batch.width, budget
            )
        halves = batch.halves()
        self._held.update(dict.fromkeys(halves))
        for half in halves:
            if half.abandoned:
                if self._claim(half):
                    self._dispatcher.reject(half, error)
                continue
            running = self._launch(half)
            outcome = self._finish(running)
            if isinstance(outcome, Exception):
                self._isolate(half, outcome)
            else:
                self._complete(running, outcome)

    def _complete(self, done: _Running, outputs: Arrays) -> None:
        if self._claim(done.batch):
            try:
                self._dispatcher.complete(done.batch, outputs, done.started_s, done.finished_s)
            except BaseException:
                self._held[done.batch] = None  # `_main` answers it
                raise


def _item_error(batch: Batch, error: Exception) -> BackendError | OutOfMemoryError:
    """What the caller of the one item in a batch is told: no words of a foreign library, which may hold paths."""
    position = batch.entries[0][1]
    if is_out_of_memory(error):
        return OutOfMemoryError(
            f"Item {position} of the request ({batch.tokens} tokens) does not fit into the memory that is left, even "
            "alone. Try again when less is going on, or send it in shorter pieces.",
            retry_after_s=OUT_OF_MEMORY_RETRY_S,
        )
    reason = str(error) if isinstance(error, InfinityError) else f"{type(error).__name__}; the server's log has more."
    told = BackendError(f"The model failed on item {position} of the request: {reason}", item_index=position)
    # for callers in the same process; its frames would keep the arrays of the batch
    told.__cause__ = error.with_traceback(None)
    return told
