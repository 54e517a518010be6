"""Speed, latency, memory and fidelity of one way to compute a model; runs in a process of its own."""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
from infinity_emb.engine.fidelity.probes import QUERY
from infinity_emb.types import Task

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any, TypeAlias

    from infinity_emb.config.engine_args import EngineArgs

    Work: TypeAlias = Callable[[Sequence[str]], Awaitable[Any]]

CALL_ITEMS = 32
CALLERS = 4
_SHORT = "how does a server answer in time"
# Words a text: half of them short, the longest a page.
_LENGTHS = (8, 12, 20, 30, 45, 70, 110, 180)
_WORDS = ("the", "server", "reads", "each", "text", "once", "and", "keeps", "what", "it", "computed", "for", "later")


@dataclass(frozen=True, slots=True)
class Measured:
    """What one way to compute a model gave.

    Attributes:
        items_per_s: Texts of mixed length, in calls of 32 from four callers.
        latency_ms: Median of one short text alone.
        memory_mb: Most memory that the process took.
        min_cosine: Fidelity against the float32 reference; None if it was not checked.
        dtype: Number format that was computed in; another one than was asked for if that gave wrong results.
    """

    items_per_s: float
    latency_ms: float
    memory_mb: float
    min_cosine: float | None
    dtype: str


def measure(args: EngineArgs, duration_s: float) -> Measured:
    """Load, measure for so long, and close.

    Raises:
        InfinityError: It cannot be computed in this way.
    """
    engine = AsyncEmbeddingEngine(args)
    try:
        items_per_s, latency_ms = asyncio.run(_measure(engine, duration_s))
    finally:
        engine.close()
    cosine = engine.card.extra.get("fidelity_min_cosine")
    return Measured(
        items_per_s, latency_ms, _peak_mb(), None if cosine is None else float(cosine), str(engine.card.dtype)
    )


def texts() -> list[str]:
    """One call's texts, always the same."""
    return [
        " ".join(_WORDS[(word + number) % len(_WORDS)] for word in range(_LENGTHS[number % len(_LENGTHS)]))
        for number in range(CALL_ITEMS)
    ]


async def _measure(engine: AsyncEmbeddingEngine, duration_s: float) -> tuple[float, float]:
    await engine.astart()
    try:
        work, call = _work_of(engine), texts()
        await work(call)
        waits_s: list[float] = []
        end_s = time.perf_counter() + duration_s / 3
        while time.perf_counter() < end_s or not waits_s:
            started_s = time.perf_counter()
            await work([_SHORT])
            waits_s.append(time.perf_counter() - started_s)
        started_s = time.perf_counter()
        counts = await asyncio.gather(*(_call_until(work, call, started_s + duration_s) for _ in range(CALLERS)))
        took_s = time.perf_counter() - started_s
    finally:
        await engine.astop()
    return sum(counts) * len(call) / took_s, statistics.median(waits_s) * 1000


async def _call_until(work: Work, call: Sequence[str], end_s: float) -> int:
    count = 0
    while time.perf_counter() < end_s or not count:
        await work(call)
        count += 1
    return count


def _work_of(engine: AsyncEmbeddingEngine) -> Work:
    """What the model is for."""
    tasks = engine.card.tasks
    if Task.EMBED in tasks:
        return engine.embed_result
    if Task.RERANK in tasks:
        return lambda call: engine.rerank_result(QUERY, call)
    if Task.SPARSE in tasks:
        return engine.sparse_result
    return engine.multi_vector_result if Task.MULTI_VECTOR in tasks else engine.classify_result


def _peak_mb() -> float:
    if sys.platform == "win32":
        return 0.0  # nothing in the standard library tells
    import resource  # noqa: PLC0415 - not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)
