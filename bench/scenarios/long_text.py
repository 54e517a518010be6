"""Part 9: a text of 5 MB costs no more than its first 4,000 characters, over the engine in process."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from typing import TYPE_CHECKING

from measure import Spread, ratios
from report import Line

from infinity_emb import AsyncEmbeddingEngine, EngineArgs

if TYPE_CHECKING:
    from context import Context
    from report import Report

_CHARACTERS = 5_000_000
_CUT_CHARACTERS = 4_000
_TIMES = 10  # of each text in a round
_BAR = 1.5


def run(context: Context, report: Report) -> None:
    """The same prose whole and cut; a vector that differs ends the scenario."""
    asyncio.run(_run(context, report))


async def _run(context: Context, report: Report) -> None:
    long = _prose(context.texts.documents)
    texts = {"5 MB": long, "4,000 characters": long[:_CUT_CHARACTERS]}
    args = EngineArgs(model_name_or_path=context.model, vector_cache_mb=0)
    async with AsyncEmbeddingEngine.from_args(args) as engine:
        found = [(await engine.embed_result([text])).vectors[0] for text in texts.values()]
        if not (found[0] == found[1]).all():
            raise RuntimeError("the vector of the text of 5 MB is not that of its first 4,000 characters")
        waits: dict[str, list[float]] = {name: [] for name in texts}
        for turn in range(max(5, context.rounds)):
            for name in texts if turn % 2 == 0 else reversed(texts):
                waits[name].append(await _median_ms(engine, texts[name]))
    value = ratios(waits["5 MB"], waits["4,000 characters"])
    report.line(Line("9", "a text of 5 MB / its first 4,000 characters: time", value, _BAR, at_most=True))
    rows = [(name, str(Spread.of(values))) for name, values in waits.items()]
    report.table("Part 9: long texts", ("text", "ms"), rows)


async def _median_ms(engine: AsyncEmbeddingEngine, text: str) -> float:
    waits = []
    for _ in range(_TIMES):
        started_s = time.perf_counter()
        await engine.embed_result([text])
        waits.append(1000 * (time.perf_counter() - started_s))
    return statistics.median(waits)


def _prose(documents: list[str]) -> str:
    """Documents one behind the other until the text is long enough."""
    parts: list[str] = []
    length = 0
    for document in itertools.cycle(documents):
        parts.append(document)
        length += len(document) + 1
        if length > _CHARACTERS:
            return " ".join(parts)[:_CHARACTERS]
    return ""
