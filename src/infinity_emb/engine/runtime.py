"""Hot path. A loaded model at work: the waiting line, its workers, and the way in for finished features."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.errors import BackendError, LoadError, NotReadyError, OutOfMemoryError
from infinity_emb.models.features import Features
from infinity_emb.scheduler.batcher import Batcher
from infinity_emb.scheduler.dispatcher import Dispatcher, Load
from infinity_emb.scheduler.limits import Limits
from infinity_emb.scheduler.replica import HANG_LIMIT_S, Replica
from infinity_emb.scheduler.request import Request
from infinity_emb.scheduler.runner import Runner
from infinity_emb.scheduler.supervisor import Supervisor
from infinity_emb.types import Call, Priority

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infinity_emb.backends.base import Arrays, Backend
    from infinity_emb.scheduler.measures import BatchMeasures
    from infinity_emb.scheduler.waiting import Waiting

_log = logging.getLogger("infinity_emb")
# A batch that runs when the grace period ends may take this long to come back before it is given up.
JOIN_TIMEOUT_S = 5.0
# Waiting work is bounded to about this long on the slowest machine we measured.
WAITING_BATCHES = 2000


class ModelRuntime:
    """Runs between `start` and `stop`; one use.

    Args:
        backends: One a replica; all with the same layout.
        max_items: Most items in one batch.
        queue_items: Most items that may wait.
        queue_tokens: Most tokens that may wait; None follows the layout.
        renew: Loads the backend of a replica again, for when it hangs; None waits until it comes back.
        hang_limit_s: How long one batch may compute.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        max_items: int,
        queue_items: int,
        queue_tokens: int | None,
        *,
        renew: Callable[[int], Backend] | None = None,
        hang_limit_s: float = HANG_LIMIT_S,
    ) -> None:
        layout = backends[0].layout
        self._interactive_tokens = layout.batch_tokens // 2
        tokens = queue_tokens or layout.batch_tokens * WAITING_BATCHES
        self._limits = Limits(queue_items, tokens)
        self._dispatcher = Dispatcher(Batcher(layout, max_items), self._limits)
        self._backends = list(backends)
        self._replicas = [
            Replica(
                f"infinity-worker-{number}",
                self._dispatcher,
                Runner(backend),
                renew=None if renew is None else partial(self._renewed, number, renew),
                hang_limit_s=hang_limit_s,
            )
            for number, backend in enumerate(backends)
        ]
        # Waking a thread costs more than a small request does, so requests that come together wake a worker once.
        self._waking: asyncio.AbstractEventLoop | None = None
        self._supervisor = Supervisor(self._dispatcher, self._replicas, hang_limit_s / 8)

    def start(self) -> None:
        """Let the workers take batches."""
        self._supervisor.start()

    def stop(self, grace_s: float) -> bool:
        """Answer what was accepted within the grace period, refuse the rest; False if a worker hangs."""
        self._dispatcher.drain(grace_s)
        self._supervisor.stop(JOIN_TIMEOUT_S)
        self._dispatcher.close()
        deadline_s = time.monotonic() + JOIN_TIMEOUT_S
        hanging = [r for r in self._replicas if not r.join(max(0.0, deadline_s - time.monotonic()))]
        for replica in hanging:
            replica.abandon(NotReadyError("The engine stopped before this request was computed."))
        if hanging:
            _log.error("%d workers did not end in time; what they compute is dropped", len(hanging))
        return not hanging

    @property
    def alive(self) -> bool:
        """Whether a request sent now can be computed."""
        return self._supervisor.alive

    @property
    def restarts(self) -> int:
        """How often a worker that died or hung was replaced."""
        return self._supervisor.restarts

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The backends in use, one a replica."""
        return tuple(self._backends)

    def busy_s(self) -> float:
        """How long the longest-running batch has been computing."""
        return max(replica.busy_s() for replica in self._replicas)

    def load(self) -> Load:
        """Snapshot of the waiting line."""
        return self._dispatcher.load()

    def measures(self) -> BatchMeasures:
        """What was counted of batches since the start."""
        return self._dispatcher.measures()

    def waiting_line(self, limit: int) -> list[Waiting]:
        """The first requests that wait."""
        return self._dispatcher.waiting_line(limit)

    @property
    def limits(self) -> Limits:
        """Bounds of the waiting line."""
        return self._limits

    def check_room(self, items: int) -> None:
        """Raise `OverloadedError` before work is spent on a request that will not fit."""
        self._dispatcher.check_room(items)

    async def compute(self, items: Sequence[Features], call: Call, wanted: frozenset[str] | None = None) -> Arrays:
        """Outputs of the model for each item, `[items, width]` each; cancelling drops what is not computing yet.

        Args:
            items: What it shall see.
            call: Circumstances.
            wanted: Outputs that are kept, None for all.

        Raises:
            OverloadedError: The waiting line is full.
            BackendError: The model failed on one of the items.
            DeadlineExceededError: Not computed in time.
            NotReadyError: The engine stopped.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        request = self._request(items, future, loop, call, wanted)
        tokens = request.waiting_tokens
        self._dispatcher.submit(request, wake=False)
        if self._waking is not loop:
            self._waking = loop
            loop.call_soon(self._wake)
        try:
            await future
        except asyncio.CancelledError:
            self._dispatcher.cancel(request)
            raise
        if call.times is not None:
            call.times.queue_s += request.started_s - request.arrived_s
            call.times.forward_s += request.computed_s - request.started_s
            call.times.computed_s = request.computed_s
            call.times.tokens += tokens
        return request.results

    def compute_blocking(self, items: Sequence[Features], call: Call) -> Arrays:
        """As `compute`, for a thread without an event loop."""
        future: Future[None] = Future()
        request = self._request(items, future, None, call)
        self._dispatcher.submit(request)
        try:
            future.result()
        except KeyboardInterrupt:
            self._dispatcher.cancel(request)
            raise
        return request.results

    def warm_up(self, longest: int) -> None:
        """Compute a text alone and a few together, so that the first request does not pay for what comes but once.

        Small batches, because start-up waits for them: what a further shape costs is little. What comes out counts for
        nothing (`empty`): a table of words may well hold nothing but zeros for this token.

        Raises:
            LoadError: The model cannot compute.
        """
        for length, count in ((min(8, longest), 1), (min(16, longest), 4)):
            self._warm_up([Features(np.ones(length, np.int64), empty=True)] * count)

    def warm_up_on(self, item: Features) -> None:
        """As `warm_up`, for a model whose items are all of one size."""
        self._warm_up([item])

    def _warm_up(self, items: list[Features]) -> None:
        try:
            self.compute_blocking(items, Call(priority=Priority.INTERACTIVE))
        except (BackendError, OutOfMemoryError) as error:
            reason = error if error.__cause__ is None else error.__cause__
            raise LoadError(f"The model is loaded, but cannot compute a first input: {reason}") from error

    def _wake(self) -> None:
        self._waking = None
        self._dispatcher.wake()

    def _renewed(self, number: int, renew: Callable[[int], Backend]) -> Runner:
        self._backends[number] = renew(number)
        return Runner(self._backends[number])

    def _request(
        self,
        items: Sequence[Features],
        future: asyncio.Future[None] | Future[None],
        loop: asyncio.AbstractEventLoop | None,
        call: Call,
        wanted: frozenset[str] | None = None,
    ) -> Request:
        request = Request(items, future, loop, Priority.INTERACTIVE, call.deadline_s, owner=call.owner, wanted=wanted)
        if call.priority is not None:
            request.priority = call.priority
        elif request.waiting_tokens > self._interactive_tokens:
            request.priority = Priority.BULK
        return request
