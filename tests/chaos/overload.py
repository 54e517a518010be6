"""Measures a server at its capacity and at ten times that: what is accepted, how fast the rest is refused, memory.

Each request costs the backend a fixed time (`faults.SLEEP`), so capacity is the same on every machine. The client speaks
plain HTTP over connections that it keeps, because a library's client would be too busy itself to tell 5 ms from 50.
"""

from __future__ import annotations

import asyncio
import json
import time
import urllib.parse
from collections import Counter
from dataclasses import dataclass, field

import faults
from numbers_held import held_by

TEXTS = [f"a {faults.SLEEP} dog"] * 16
# Two requests fill a batch of 32 texts, and a batch takes `SLEEP_S`.
CAPACITY_PER_S = 2 / faults.SLEEP_S
ANSWER_S = 60.0


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

    def count(self, status: int, retry_after: str, took_s: float) -> None:
        """One answer."""
        self.statuses[status] += 1
        if status == 200:
            self.accepted_s.append(took_s)
        else:
            self.refused_s.append(took_s)
            self.retry_after.add(retry_after)


def percentile(values: list[float], share: float = 0.99) -> float:
    """0.0 without values."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else 0.0


class Connections:
    """Sends the same request again and again; as many connections as there are requests at one moment."""

    def __init__(self, url: str) -> None:
        self._parts = urllib.parse.urlsplit(url)
        body = json.dumps({"input": TEXTS, "encoding_format": "base64"}).encode()
        head = f"POST /v1/embeddings HTTP/1.1\r\nhost: {self._parts.netloc}\r\ncontent-type: application/json\r\n"
        self._request = f"{head}content-length: {len(body)}\r\n\r\n".encode() + body
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self) -> tuple[int, str]:
        """Status and `Retry-After`."""
        where = self._parts.hostname, self._parts.port
        reader, writer = self._idle.pop() if self._idle else await asyncio.open_connection(*where)
        writer.write(self._request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        await reader.readexactly(int(headers["content-length"]))
        self._idle.append((reader, writer))
        return int(head[9:12]), headers.get("retry-after", "")

    def close(self) -> None:
        """Hang up."""
        for _, writer in self._idle:
            writer.close()


async def load(url: str, pid: int, per_s: float, duration_s: float) -> Measured:
    """Requests at a fixed rate, whatever becomes of the earlier ones."""
    found = Measured()
    running: set[asyncio.Task[None]] = set()
    connections = Connections(url)

    async def one() -> None:
        started_s = time.perf_counter()
        status, retry_after = await asyncio.wait_for(connections.post(), ANSWER_S)
        found.count(status, retry_after, time.perf_counter() - started_s)

    begun_s = time.perf_counter()
    sent = 0
    while (now_s := time.perf_counter() - begun_s) < duration_s:
        for _ in range(int(now_s * per_s) - sent):
            running.add(asyncio.ensure_future(one()))
            sent += 1
        found.most_bytes = max(found.most_bytes, held_by(pid).resident_bytes)
        await asyncio.sleep(0.01)
    await asyncio.gather(*running)
    connections.close()
    return found
