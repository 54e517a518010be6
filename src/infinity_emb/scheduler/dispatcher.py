"""Hot path. Owns the waiting line of one model: admits, hands out batches, settles every request exactly once."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.errors import BackendError, DeadlineExceededError, NotReadyError, OverloadedError
from infinity_emb.scheduler.limits import DrainRate, Limits
from infinity_emb.scheduler.measures import BatchMeasures
from infinity_emb.scheduler.settle import fail, settle
from infinity_emb.scheduler.waiting import Waiting, describe

if TYPE_CHECKING:
    from infinity_emb.backends.base import Arrays
    from infinity_emb.scheduler.batch import Batch
    from infinity_emb.scheduler.batcher import Batcher
    from infinity_emb.scheduler.request import Request


STOPPED_RETRY_S = 5
_FLOAT32 = np.dtype(np.float32)
_STOPPING = "The engine is stopping and takes no new work."


@dataclass(frozen=True, slots=True)
class Load:
    """Snapshot of a waiting line.

    Attributes:
        items: Items that wait.
        tokens: Tokens that wait.
        requests: Requests that wait.
        running_items: Items being computed.
        oldest_wait_s: How long the oldest request has waited.
        tokens_per_s: Measured drain rate.
    """

    items: int
    tokens: int
    requests: int
    running_items: int
    oldest_wait_s: float
    tokens_per_s: float


class Dispatcher:
    """Thread-safe; one lock, taken once a request and a few times a batch.

    Args:
        batcher: The policy.
        limits: How much may wait.
    """

    def __init__(self, batcher: Batcher, limits: Limits) -> None:
        self._batcher = batcher
        self._limits = limits
        self._changed = threading.Condition(threading.Lock())
        self._refusal: str | None = None
        self._retry_after_s = STOPPED_RETRY_S
        self._stopping = False
        self._closed = False
        self._running_items = 0
        self._rate = DrainRate()
        self._measures = BatchMeasures()

    def submit(self, request: Request, *, wake: bool = True) -> None:
        """Admit a whole request or nothing of it.

        Args:
            request: Becomes part of the line.
            wake: Tell the workers. Without it they see the request only when they look anyway; `wake` must follow.

        Raises:
            NotReadyError: The engine is stopping, or no worker is there to compute.
            OverloadedError: Too much waits already.
            InvalidInputError: An item has no tokens.
        """
        self._batcher.check(request)
        with self._changed:
            if self._refusal is not None:
                raise NotReadyError(self._refusal, retry_after_s=self._retry_after_s)
            self.check_room(len(request.items), request.waiting_tokens)
            request.arrived_s = time.monotonic()
            self._batcher.add(request)
            if wake:
                self._changed.notify()

    def wake(self) -> None:
        """Tell the workers of what was submitted without telling them."""
        with self._changed:
            self._changed.notify()

    def check_room(self, items: int, tokens: int = 0) -> None:
        """Raise `OverloadedError` if so much more does not fit. An idle line takes a request of any size."""
        line = self._batcher
        if line.waiting_items == 0:
            return
        if line.waiting_items + items > self._limits.items or line.waiting_tokens + tokens > self._limits.tokens:
            raise OverloadedError(
                f"The waiting line is full: {line.waiting_items} items ({line.waiting_tokens} tokens) wait, "
                f"at most {self._limits.items} items ({self._limits.tokens} tokens) may. Try again later.",
                retry_after_s=self._rate.seconds_for(line.waiting_tokens),
            )

    def cancel(self, request: Request) -> None:
        """Give a request up; what of it is not computing yet never will be."""
        with self._changed:
            if not request.closed:
                request.closed = True
                self._batcher.remove(request)
                self._changed.notify_all()

    def take(self, *, wait: bool) -> Batch | None:
        """The next batch to compute; None if there is nothing (and not `wait`), or when the line has closed."""
        with self._changed:
            while True:
                now_s = time.monotonic()
                batch = self._next(now_s)
                if batch is not None or not wait or self._closed:
                    if batch is not None:
                        self._running_items += len(batch.entries)
                    return batch
                self._changed.wait()

    def exchange(self, batch: Batch) -> Batch | None:
        """Trade a batch taken ahead, not yet started, for a better one if there is one by now.

        None if nobody waits for it any more, and nothing else waits. Never blocks: the caller holds finished results.
        """
        with self._changed:
            if not self._batcher.improves(batch) and not batch.abandoned:
                return batch
            self._running_items -= len(batch.entries)
            self._batcher.put_back(batch)
            better = self._next(time.monotonic())
            if better is None:
                self._changed.notify_all()
            else:
                self._running_items += len(better.entries)
            return better

    def complete(self, batch: Batch, outputs: Arrays, started_s: float, finished_s: float) -> None:
        """Hand out the results of a batch, computed between two moments, and settle the requests that are complete."""
        finished: list[Request] = []
        failed: list[tuple[Request, BackendError]] = []
        with self._changed:
            self._rate.observe(batch.tokens, started_s, finished_s)
            self._measures.observe(batch)
            for request, positions, rows in batch.groups():
                if request.closed:
                    continue
                error = _store(request, outputs, positions, rows)
                if error is not None:
                    failed.append((request, error))
                    self._close(request)
                    continue
                request.remaining -= len(positions)
                request.started_s = request.started_s or started_s
                request.computed_s = finished_s
                if request.remaining == 0:
                    request.closed = True
                    finished.append(request)
            self._running_items -= len(batch.entries)
            self._changed.notify_all()
        settle(finished)
        for request, error in failed:
            fail(request, error)

    def reject(self, batch: Batch, error: Exception) -> None:
        """Answer every request of a batch with an error."""
        failed: list[Request] = []
        with self._changed:
            self._running_items -= len(batch.entries)
            for request, _, _ in batch.groups():
                if not request.closed:
                    self._close(request)
                    failed.append(request)
            self._changed.notify_all()
        for request in failed:
            fail(request, error)

    def shrink(self, batch: Batch) -> int:
        """A batch did not fit into memory: choose smaller ones from now on; returns the new budget in token slots."""
        with self._changed:
            return self._batcher.shrink(batch.rows * batch.width)

    def load(self) -> Load:
        """Snapshot for health, metrics and `/models`."""
        with self._changed:
            oldest_s = self._batcher.oldest_arrival_s()
            return Load(
                items=self._batcher.waiting_items,
                tokens=self._batcher.waiting_tokens,
                requests=self._batcher.waiting_requests,
                running_items=self._running_items,
                oldest_wait_s=0.0 if oldest_s is None else time.monotonic() - oldest_s,
                tokens_per_s=self._rate.tokens_per_s,
            )

    def measures(self) -> BatchMeasures:
        """What was counted of batches since the start."""
        with self._changed:
            return self._measures.copy()

    def waiting_line(self, limit: int) -> list[Waiting]:
        """The first requests that wait, most urgent class first."""
        now_s = time.monotonic()
        with self._changed:
            return [describe(request, now_s) for request in self._batcher.requests()[:limit]]

    def drain(self, timeout_s: float) -> bool:
        """Take nothing new and wait until all is answered; False if the time was not enough."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            self._refuse(_STOPPING)
            while self._batcher.waiting_items or self._running_items:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    return False
                self._changed.wait(left_s)
        return True

    def close(self) -> None:
        """Answer everything that still waits with `NotReadyError` and let the workers go."""
        with self._changed:
            self._refuse(_STOPPING)
            self._closed = True
            left = self._close_waiting()
        for request in left:
            fail(
                request,
                NotReadyError("The engine stopped before this request was computed.", retry_after_s=STOPPED_RETRY_S),
            )

    def suspend(self, reason: str, retry_after_s: int) -> None:
        """No worker is there to compute: refuse new requests and answer those that wait, until `resume`."""
        with self._changed:
            if self._stopping:
                return
            self._refusal, self._retry_after_s = reason, retry_after_s
            left = self._close_waiting()
        for request in left:
            fail(request, NotReadyError(reason, retry_after_s=retry_after_s))

    def resume(self) -> None:
        """Take requests again after `suspend`."""
        with self._changed:
            if not self._stopping:
                self._refusal = None

    def _refuse(self, reason: str) -> None:
        self._stopping = True
        self._refusal, self._retry_after_s = reason, STOPPED_RETRY_S

    def _close_waiting(self) -> list[Request]:
        left = self._batcher.requests()
        for request in left:
            self._close(request)
        self._changed.notify_all()
        return left

    def _close(self, request: Request) -> None:
        request.closed = True
        self._batcher.remove(request)

    def _next(self, now_s: float) -> Batch | None:
        """Next batch without the requests whose deadline has passed."""
        while True:
            batch = self._batcher.next_batch(now_s)
            if batch is None:
                return None
            late = {r for r, _ in batch.entries if r.deadline_s is not None and r.deadline_s < now_s}
            if not late:
                return batch
            self._batcher.put_back(batch)
            for request in late:
                self._close(request)
                fail(request, DeadlineExceededError("The time limit passed before the request was computed."))
            self._changed.notify_all()  # `drain` may wait for these


def _store(request: Request, outputs: Arrays, positions: list[int], rows: list[int]) -> BackendError | None:
    """Copy rows of a batch to their places in the request's arrays."""
    for name, array in outputs.items():
        if not request.wants(name):
            continue
        place = request.results.get(name)
        if place is None:
            # an array of objects holds one array for each text, see `scheduler.ragged`
            dtype = array.dtype if array.dtype.kind == "O" else _FLOAT32
            if len(rows) == len(request.items) == rows[-1] - rows[0] + 1:  # all of it, in order; a library owns `array`
                request.results[name] = np.array(array[rows[0] : rows[-1] + 1], dtype, order="C")
                continue
            place = request.results[name] = np.empty((len(request.items), *array.shape[1:]), dtype)
        if place.shape[1:] != array.shape[1:]:
            widths = f"{array.shape[1]} numbers a row, {place.shape[1]} in an earlier batch"
            return BackendError(f"{name!r} has {widths}; this is a bug.", item_index=positions[0])
        place[positions] = array[rows]
    return None
