"""Every request that was sent and what became of it; what must not happen is kept word for word."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

ANSWER_LIMIT_S = 30.0
KEPT = 20


@dataclass
class Ledger:
    """Counts by kind of request and status.

    Attributes:
        outcomes: (kind, status) → how many; "left" is a client that hung up on purpose.
        wrong: What must not have happened.
        slowest_s: Longest wait for an answer, by kind.
    """

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    wrong_count: int = 0
    sent: int = 0
    slowest_s: dict[str, float] = field(default_factory=dict)

    def answered(self, kind: str, status: int | str, took_s: float, allowed: set[int | str], text: str = "") -> None:
        """One request got one answer."""
        self.outcomes[kind, str(status)] += 1
        self.slowest_s[kind] = max(self.slowest_s.get(kind, 0.0), took_s)
        if status not in allowed:
            self.fault(f"{kind}: {status} after {took_s:.2f} s, allowed are {allowed}: {text[:300]}")
        if took_s > ANSWER_LIMIT_S:
            self.fault(f"{kind}: answered after {took_s:.1f} s")

    def fault(self, what: str) -> None:
        """Something that must not happen."""
        self.wrong_count += 1
        if len(self.wrong) < KEPT:
            self.wrong.append(what)

    def count(self, kind: str, *statuses: int | str) -> int:
        """How many of a kind ended so; any way if no status is given."""
        wanted = set(map(str, statuses))
        return sum(n for (k, status), n in self.outcomes.items() if k == kind and (not wanted or status in wanted))

    @property
    def total(self) -> int:
        """How many have an outcome."""
        return sum(self.outcomes.values())

    def report(self) -> str:
        """For people."""
        rows = [
            f"  {kind:12} {status:10} {count:7}  slowest {self.slowest_s.get(kind, 0.0):6.2f} s"
            for (kind, status), count in sorted(self.outcomes.items())
        ]
        return "\n".join([f"{self.total} of {self.sent} requests", *rows])
