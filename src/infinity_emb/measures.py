"""Numbers that are cheap to take on the hot path: histograms as plain counters, and where a request's time went."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

STAGES = ("tokenize", "queue", "forward", "respond")

Operation = Literal["embeddings", "rerank", "classify"]
"""What a model is asked for, in OpenTelemetry's words; dense, sparse and multi-vector are all embeddings."""


def operation_of(task: str) -> Operation:
    """The operation that a counted task (embed, sparse, multi_vector, rerank, classify) is part of."""
    return "rerank" if task == "rerank" else "classify" if task == "classify" else "embeddings"


class Histogram:
    """How many values were at most as large as each bound. Not thread-safe: its owner has a lock or one thread.

    Args:
        bounds: Ascending.

    Attributes:
        bounds: As given.
        counts: Values up to each bound and above the one before; the last count is of those above all bounds.
        total: Sum of all values.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def add(self, other: Histogram) -> None:
        """Sum up two of the same bounds."""
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def copy(self) -> Histogram:
        """As it stands now."""
        copied = Histogram(self.bounds)
        copied.counts = list(self.counts)
        copied.total = self.total
        return copied


class StageTimes:
    """Where the time of one request went; filled on its way through the engine.

    Attributes:
        model: Served name of the model that was asked; empty until one was.
        operation: What it was asked for; empty until it was, and where no server asks.
        tokenize_s: Reading the inputs, the wait for a thread included.
        queue_s: From admission until the first of its items began to compute.
        forward_s: From there until the last of its items was done.
        computed_s: `time.monotonic()` value of that moment; 0.0 until then.
        tokens: How many the model saw.
    """

    __slots__ = ("computed_s", "forward_s", "model", "operation", "queue_s", "tokenize_s", "tokens")

    def __init__(self) -> None:
        self.model = ""
        self.operation: Operation | Literal[""] = ""
        self.tokenize_s = 0.0
        self.queue_s = 0.0
        self.forward_s = 0.0
        self.computed_s = 0.0
        self.tokens = 0

    def seconds(self, now_s: float) -> tuple[float, float, float, float]:
        """In the order of `STAGES`, for a request whose answer was written by `now_s`."""
        return self.tokenize_s, self.queue_s, self.forward_s, now_s - self.computed_s
