"""Alternate measurements, and what is left of them: median and spread."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


@dataclass(frozen=True)
class Spread:
    """Smallest, middle and largest of several measurements."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The spread of at least one value."""
        return cls(min(values), statistics.median(values), max(values))

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.low)}-{number(self.high)})"


def number(value: float) -> str:
    """Three significant figures, thousands separated."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 0.1 else f"{value:.2f}"


def alternate(rounds: int, measurements: dict[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Measure in turn, A B, B A, A B …, so that a drift of the machine meets all alike."""
    results: dict[str, list[T]] = {name: [] for name in measurements}
    for turn in range(rounds):
        names = list(measurements)
        for name in names if turn % 2 == 0 else reversed(names):
            results[name].append(measurements[name]())
    return results


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Spread of the ratios within each round."""
    return Spread.of([mine / other for mine, other in zip(ours, theirs, strict=True)])
