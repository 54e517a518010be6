"""The one way from a query and documents to ranked scores, used by every rerank dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from infinity_emb.server.options import call_of, score_options
from infinity_emb.types import Task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.server.fields import ScoreFields
    from infinity_emb.server.request import Request
    from infinity_emb.server.serving import Serving
    from infinity_emb.types import TextInput, Usage


class Ranked(NamedTuple):
    """Documents by falling score.

    Attributes:
        model: Served name.
        order: Positions in the request, best first; equal scores keep their order.
        scores: Scores in that order.
        usage: Tokens and truncations.
    """

    model: str
    order: list[int]
    scores: list[float]
    usage: Usage


async def rank(
    request: Request, serving: Serving, fields: ScoreFields, query: str, documents: Sequence[str], *, top_n: int | None
) -> Ranked:
    """Score documents against a query and sort them.

    Raises:
        InfinityError: See the table of errors.
    """
    engine = serving.models.find(fields.model, Task.RERANK)
    result = await engine.rerank_result(
        query, documents, score_options(fields, engine), call_of(request, fields, engine, "rerank")
    )
    scores = result.scores
    _count(serving, engine, "rerank", len(documents), result.usage)
    order = np.argsort(-scores, kind="stable")[:top_n]
    return Ranked(engine.card.served_name, order.tolist(), scores[order].tolist(), result.usage)


class Classified(NamedTuple):
    """Labels of each item, by falling score.

    Attributes:
        model: Served name.
        rows: For each item `{"score", "label"}` of every label.
        usage: Tokens and truncations.
    """

    model: str
    rows: list[list[dict[str, Any]]]
    usage: Usage


async def classify(
    request: Request, serving: Serving, fields: ScoreFields, items: Sequence[TextInput | tuple[str, str]]
) -> Classified:
    """Score every label of every item and sort them.

    Raises:
        InfinityError: See the table of errors.
    """
    engine = serving.models.find(fields.model, Task.CLASSIFY, Task.RERANK)
    result = await engine.classify_result(
        items, score_options(fields, engine), call_of(request, fields, engine, "classify")
    )
    scores = result.scores
    _count(serving, engine, "classify", len(items), result.usage)
    return Classified(engine.card.served_name, [_labelled(row, result.labels) for row in scores], result.usage)


def _labelled(row: NDArray[np.float32], labels: tuple[str, ...]) -> list[dict[str, Any]]:
    order = np.argsort(-row, kind="stable").tolist()
    return [{"score": float(row[column]), "label": labels[column]} for column in order]


def _count(serving: Serving, engine: AsyncEmbeddingEngine, task: str, items: int, usage: Usage) -> None:
    serving.metrics.record_work(
        engine.card.served_name, task, items=items, tokens=usage.prompt_tokens, truncated=len(usage.truncated)
    )
