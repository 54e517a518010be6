"""A real server under mixed load while its backend misbehaves in every way at once; everything is counted."""

from __future__ import annotations

import asyncio
import os
import random
import sys
import time

import faults
import httpx
import numpy as np
from ledger import Ledger
from numbers_held import Held, settled
from traffic import Traffic, body_of, vectors_of
from work import LONG_S

from tiny_tokenizers import CORPUS

CLIENTS = 12
ALLOCATOR_SLACK_BYTES = 24 * 1024 * 1024
NOTICED_S = 3.0  # looking for a hang, and what waited in line before it
DOWN_S = 10.0  # the model is loaded again; faults come so seldom that there is no delay before it
WARM_UP_S = 16.0  # long enough for every kind of fault to have happened once


def pool(seed: int = 3) -> list[str]:
    chance = random.Random(seed)
    words = [word for word in CORPUS if word not in faults.WORDS]
    return [" ".join(chance.choices(words, k=chance.randint(1, 40))) for _ in range(60)]


def expected_vectors(url: str, texts: list[str]) -> dict[str, np.ndarray]:
    with httpx.Client(base_url=url, timeout=60) as client:
        return {text: vectors_of(client.post("/v1/embeddings", json=body_of([text])))[0] for text in texts}


async def injure(traffic: Traffic, duration_s: float) -> None:
    """Kill and hang the worker now and then, and leave it time to come back."""
    pause_s = min(75.0, duration_s / 4)  # a worker that lives for a minute is restarted without delay again
    until_s = time.monotonic() + duration_s
    async with httpx.AsyncClient(base_url=traffic.url, timeout=60) as client:
        for word in [faults.DIE, faults.HANG] * 1000:
            await asyncio.sleep(pause_s / 2)
            if time.monotonic() + pause_s / 2 > until_s:
                return
            answer = None
            while answer is None or answer.status_code == 429:  # the line is full just now
                answer = await traffic.send(client, word, {503, 429}, json=body_of([f"now {word} please"]))
            await asyncio.sleep(pause_s / 2)


async def watch_health(url: str, seen: list[tuple[float, int]]) -> None:
    async with httpx.AsyncClient(base_url=url, timeout=10) as client:
        while True:
            seen.append((time.monotonic(), (await client.get("/health")).status_code))
            await asyncio.sleep(0.1)


async def mayhem(traffic: Traffic, duration_s: float) -> list[tuple[float, int]]:
    health: list[tuple[float, int]] = []
    watcher = asyncio.ensure_future(watch_health(traffic.url, health))
    await asyncio.gather(traffic.run(CLIENTS, duration_s), injure(traffic, duration_s))
    watcher.cancel()
    await asyncio.wait({watcher})
    if not watcher.cancelled():
        watcher.result()
    return health


def ceiling_of(before: Held) -> Held:
    """5 % more memory, and what does not grow with time: the allocator's and the libraries' high-water marks.

    OpenVINO keeps the threads of its pool; it has one more a core once two models were in use at the same moment, as
    when a hung one is replaced.
    """
    most_bytes = int(before.resident_bytes * 1.05) + ALLOCATOR_SLACK_BYTES
    return Held(most_bytes, before.threads + (os.cpu_count() or 1), before.files)


def longest_down_s(health: list[tuple[float, int]]) -> float:
    """The longest spell in which `/health` was not 200."""
    longest_s, since_s = 0.0, None
    for at_s, status in health:
        since_s = None if status == 200 else (since_s or at_s)
        longest_s = max(longest_s, 0.0 if since_s is None else at_s - since_s)
    return longest_s


def gauges(url: str) -> dict[str, float]:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    rows = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    return {name.partition("{")[0]: float(value) for name, value in rows if name.startswith("infinity_")}


def test_chaos_leaves_no_request_unanswered_no_answer_wrong_and_nothing_behind(serve_faulty, chaos_s):
    limits = ["--queue-size", "400", "--max-body-bytes", "2000000", "--hang-limit-s", str(faults.HANG_LIMIT_S)]
    with serve_faulty(*limits, "--log-level", "critical") as server:
        server.wait_until_ready()
        right = expected_vectors(server.url, pool())
        warm_up = Ledger()
        asyncio.run(mayhem(Traffic(server.url, warm_up, right, seed=1), WARM_UP_S))
        assert warm_up.wrong_count == 0, "\n".join(warm_up.wrong)
        server.wait_until_ready()
        before = settled(server.process.pid)
        ledger = Ledger()
        health = asyncio.run(mayhem(Traffic(server.url, ledger, right, seed=2), chaos_s))
        server.wait_until_ready()
        sys.stdout.write(f"{ledger.report()}\n")

        assert ledger.wrong_count == 0, "\n".join(ledger.wrong)
        assert ledger.total == ledger.sent  # one outcome each
        assert ledger.count("good", 200) > chaos_s  # not a measure: it only shows that there was load
        assert ledger.count("good", 200) > ledger.count("good", 503)
        for kind, status in [("poisoned", 500), ("memory", 200), ("slow", 200), ("burst", 200), (faults.DIE, 503)]:
            assert ledger.count(kind, status), (kind, status)
        assert ledger.count(faults.HANG, 503)
        assert {status for _, status in health} == {200, 503}  # it told when the worker hung, and recovered
        sys.stdout.write(f"longest time without a model: {longest_down_s(health):.1f} s\n")
        if chaos_s >= LONG_S:  # on a machine that does nothing else
            assert ledger.slowest_s[faults.HANG] < faults.HANG_LIMIT_S + NOTICED_S
            assert longest_down_s(health) < DOWN_S

        again = expected_vectors(server.url, list(right))
        assert max(float(np.abs(again[text] - right[text]).max()) for text in right) < 1e-5
        left = gauges(server.url)
        assert (left["infinity_queue_items"], left["infinity_running_items"], left["infinity_model_up"]) == (0, 0, 1)
        ceiling = ceiling_of(before)
        after = settled(server.process.pid, ceiling)
        sys.stdout.write(f"before: {before}\nafter:  {after}\n")
        assert all(have <= allowed for have, allowed in zip(after, ceiling, strict=True)), (after, ceiling)
        assert server.stop() == 0
