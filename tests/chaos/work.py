"""Steady work of good requests; a module of its own, so that a process of its own can do it."""

from __future__ import annotations

import asyncio
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import faults
import httpx

from tiny_tokenizers import CORPUS

CLIENTS = 8
LONG_S = 300.0  # from here on a run is long enough, and its machine quiet enough, for times to be asserted
WORDS = [word for word in CORPUS if word not in faults.WORDS]


async def work(url: str, duration_s: float, seed: int) -> tuple[int, set[int]]:
    """Requests of 1 to 64 texts from some clients, each sending the next one when it has its answer."""
    chance = random.Random(seed)
    until_s = time.monotonic() + duration_s
    answered, statuses = 0, set()

    async def busy(client: httpx.AsyncClient) -> None:
        nonlocal answered
        while time.monotonic() < until_s:
            count = chance.randint(1, 64)
            texts = [" ".join(chance.choices(WORDS, k=chance.randint(1, 30))) for _ in range(count)]
            answer = await client.post("/v1/embeddings", json={"input": texts})
            assert len(answer.json()["data"]) == count
            statuses.add(answer.status_code)
            answered += 1

    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        await asyncio.gather(*(busy(client) for _ in range(CLIENTS)))
    return answered, statuses


def saturate(url: str, duration_s: float) -> None:
    """As much as the server can do."""
    answered, statuses = asyncio.run(work(url, duration_s, seed=7))
    assert statuses == {200}
    assert answered > CLIENTS
