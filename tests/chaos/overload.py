"""Measures a server at its capacity and at ten times that: what is accepted, how fast the rest is refused, memory.

Each request costs the backend a fixed time (`faults.SLEEP`), so capacity is the same on every machine.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

import faults
import httpx
from numbers_held import held_by

TEXTS = [f"a {faults.SLEEP} dog"] * 16
# Two requests fill a batch of 32 texts, and a batch takes `SLEEP_S`.
CAPACITY_PER_S = 2 / faults.SLEEP_S


@dataclass
class Measured:
    """What happened during one load.

    Attributes:
        statuses: How many answers of each status.
        accepted_s: How long each 200 took.
        refused_s: How long each 429 took.
        retry_after: Every value of that header.
        most_bytes: Resident memory at its highest.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    accepted_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    retry_after: set[str] = field(default_factory=set)
    most_bytes: int = 0

    def report(self, name: str) -> str:
        """One line for people."""
        return (
            f"{name:12} {dict(self.statuses)} accepted p99 {percentile(self.accepted_s):.3f} s, "
            f"refused p99 {percentile(self.refused_s) * 1000:.1f} ms, memory {self.most_bytes / 2**20:.0f} MiB"
        )


def percentile(values: list[float], share: float = 0.99) -> float:
    """0.0 without values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


async def load(url: str, pid: int, per_s: float, duration_s: float) -> Measured:
    """Requests at a fixed rate, whatever becomes of the earlier ones."""
    found = Measured()
    running: set[asyncio.Task[None]] = set()
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:

        async def one() -> None:
            started_s = time.perf_counter()
            answer = await client.post("/v1/embeddings", json={"input": TEXTS, "encoding_format": "base64"})
            took_s = time.perf_counter() - started_s
            found.statuses[answer.status_code] += 1
            if answer.status_code == 200:
                found.accepted_s.append(took_s)
            else:
                found.refused_s.append(took_s)
                found.retry_after.add(answer.headers.get("retry-after", ""))

        begun_s = time.perf_counter()
        sent = 0
        while (now_s := time.perf_counter() - begun_s) < duration_s:
            for _ in range(int(now_s * per_s) - sent):
                task = asyncio.ensure_future(one())
                running.add(task)
                task.add_done_callback(running.discard)
                sent += 1
            found.most_bytes = max(found.most_bytes, held_by(pid).resident_bytes)
            await asyncio.sleep(0.01)
        await asyncio.gather(*running)
    return found
