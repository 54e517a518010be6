"""How much may wait, and when a caller who was turned away should come back."""

from __future__ import annotations

import math
from dataclasses import dataclass

RETRY_MAX_S = 60
# Weight of the newest batch in the running drain rate.
_SMOOTHING = 0.2


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the waiting line.

    Attributes:
        items: Most items that may wait.
        tokens: Most tokens that may wait.
    """

    items: int
    tokens: int


class DrainRate:
    """Tokens a second, measured over the batches that were computed."""

    __slots__ = ("_last_s", "_rate")

    def __init__(self) -> None:
        self._rate = 0.0
        self._last_s: float | None = None

    @property
    def tokens_per_s(self) -> float:
        """0.0 until something was measured."""
        return self._rate

    def observe(self, tokens: int, started_s: float, finished_s: float) -> None:
        """Take one batch into account."""
        rate = tokens / max(finished_s - max(started_s, self._last_s or started_s), 1e-6)
        self._last_s = finished_s
        self._rate = rate if self._rate == 0.0 else self._rate + _SMOOTHING * (rate - self._rate)

    def seconds_for(self, tokens: int) -> int:
        """Whole seconds until so many tokens are done, between 1 and `RETRY_MAX_S`."""
        if self._rate <= 0.0:
            return 1
        return max(1, min(RETRY_MAX_S, math.ceil(tokens / self._rate)))
