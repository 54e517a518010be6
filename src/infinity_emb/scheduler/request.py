"""Hot path. One request in the waiting line: many items, one answer."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from concurrent.futures import Future

    from infinity_emb.backends.base import Arrays
    from infinity_emb.models.features import Features
    from infinity_emb.types import Priority


class Request:
    """Items that are answered together.

    Attributes:
        items: What the model shall see, in input order.
        costs: Tokens of each item.
        priority: Class in the waiting line.
        deadline_s: `time.monotonic()` value after which nobody waits; None is no limit.
        future: Settled exactly once: with None when `results` is complete, or with an error.
        loop: Event loop the future belongs to; None for a `concurrent.futures.Future`.
        owner: Whose it is; owners share the machine fairly. None is everyone without a key.
        number: Order of arrival, given by the batcher.
        turn: Its place in fair queueing, see `scheduler.line`.
        pending: Positions of the items not yet picked for a batch, in order.
        waiting_tokens: Tokens of those items.
        remaining: Items without a result.
        results: Output name → array `[items, width]`, filled as batches come back.
        wanted: Names of the outputs that are kept; None is all of them.
        closed: True once answered or given up; later results are dropped.
        arrived_s: When it was admitted.
        started_s: When the first of its batches began to compute; 0.0 until that one is done.
        computed_s: When the last of its batches was done.
    """

    __slots__ = (
        "arrived_s",
        "closed",
        "computed_s",
        "costs",
        "deadline_s",
        "future",
        "items",
        "loop",
        "number",
        "owner",
        "pending",
        "priority",
        "remaining",
        "results",
        "started_s",
        "turn",
        "waiting_tokens",
        "wanted",
    )

    def __init__(
        self,
        items: Sequence[Features],
        future: asyncio.Future[None] | Future[None],
        loop: asyncio.AbstractEventLoop | None,
        priority: Priority,
        deadline_s: float | None = None,
        *,
        owner: bytes | None = None,
        wanted: frozenset[str] | None = None,
    ) -> None:
        self.items = items
        self.costs = [len(item.token_ids) for item in items]
        self.priority = priority
        self.deadline_s = deadline_s
        self.future: Any = future
        self.loop = loop
        self.owner = owner
        self.wanted = wanted
        self.number = 0
        self.turn = 0
        self.pending = deque(range(len(items)))
        self.waiting_tokens = sum(self.costs)
        self.remaining = len(items)
        self.results: Arrays = {}
        self.closed = False
        self.arrived_s = 0.0
        self.started_s = 0.0
        self.computed_s = 0.0

    def wants(self, output: str) -> bool:
        """Whether an output of the model is kept."""
        return self.wanted is None or output in self.wanted
