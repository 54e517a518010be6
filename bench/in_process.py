"""The engine in its own process without HTTP, as many requests at once as a server sees; JSON in, JSON out."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time

from infinity_emb import AsyncEmbeddingEngine, EngineArgs


async def measure(job: dict) -> float:
    """Requests per second inside the window, with the load generator's way of counting."""
    engine = AsyncEmbeddingEngine.from_args(EngineArgs(model_name_or_path=job["model"]))
    groups = itertools.cycle(job["groups"])
    credit = 0.0
    async with engine:
        begin_s = time.perf_counter() + job["warm_s"]
        end_s = begin_s + job["duration_s"]

        async def ask() -> None:
            nonlocal credit
            while (sent_s := time.perf_counter()) < end_s:
                await engine.embed_result(next(groups))
                done_s = time.perf_counter()
                credit += max(0.0, min(done_s, end_s) - max(sent_s, begin_s)) / (done_s - sent_s)

        await asyncio.gather(*(ask() for _ in range(job["at_once"])))
    return credit / job["duration_s"]


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    json.dump({"requests_per_s": asyncio.run(measure(asked))}, sys.stdout)
