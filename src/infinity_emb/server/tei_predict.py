"""TEI's `/predict`, and the doors `POST /`, `/invocations` and `/vertex`, which do what the model is for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import ScoreFields
from infinity_emb.server.rerank import rerank
from infinity_emb.server.response import json_response
from infinity_emb.server.scoring import classify
from infinity_emb.server.tei import (
    SimilarityBody,
    TeiEmbedBody,
    compute_headers,
    embed_body,
    similarity_body,
    sparse_body,
    task_of,
)
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.serving import Serving


class PredictBody(ScoreFields, kw_only=True):
    """Body of `/predict`. A flat list of two strings is one pair; several items are a list of lists."""

    inputs: Annotated[str | list[str | list[str]], Meta(description="A text, a pair, or a list of `[text]` or pairs.")]
    parameters: Annotated[
        dict[str, Any] | None, Meta(description="Hugging Face's options (`top_k`); the answer is then always nested.")
    ] = None


class DoorBody(msgspec.Struct, kw_only=True):
    """Body of `POST /`: that of embed, predict, similarity or rerank, by model and form."""

    inputs: Any = None
    texts: Any = None
    model: str | None = None


class VertexBody(msgspec.Struct, kw_only=True):
    """Body of `/vertex`: several bodies of `POST /` at once."""

    instances: Annotated[list[dict[str, Any]], Meta(min_length=1)]


_PREDICT = decoder_for(PredictBody)
_DOOR = decoder_for(DoorBody)
_VERTEX = decoder_for(VertexBody)


async def predict(request: Request, serving: Serving) -> Response:
    """Labels and scores of one item as a flat list, of several as a list of lists."""
    return await _predict_body(request, serving, decode_body(request, _PREDICT))


async def door(request: Request, serving: Serving) -> Response:
    """Embed, predict, rerank or compare, as the model and the body say."""
    body = decode_body(request, _DOOR)
    if body.texts is not None:
        return await rerank(request, serving)
    if body.inputs is None:
        raise SchemaError("inputs: this field is required.", loc=("inputs",), kind="missing")
    if isinstance(body.inputs, dict):
        return await similarity_body(request, serving, _again(request, SimilarityBody))
    task = task_of(serving, body.model)
    if task is Task.SPARSE:
        return await sparse_body(request, serving, _again(request, TeiEmbedBody))
    if task is Task.EMBED:
        return await embed_body(request, serving, _again(request, TeiEmbedBody))
    return await _predict_body(request, serving, _again(request, PredictBody))


async def vertex(request: Request, serving: Serving) -> Response:
    """One prediction an instance."""
    body = decode_body(request, _VERTEX)
    predictions = []
    for instance in body.instances:
        request.body = msgspec.json.encode(instance)
        answer = await door(request, serving)
        predictions.append(msgspec.json.decode(answer.body))
    return json_response({"predictions": predictions})


def _again(request: Request, kind: type[Any]) -> Any:
    """Read the body as the form that it turned out to have; only these doors read a body twice."""
    return decode_body(request, decoder_for(kind))


async def _predict_body(request: Request, serving: Serving, body: PredictBody) -> Response:
    started_s = time.perf_counter()
    items, single = _items(body.inputs)
    classified = await classify(request, serving, body, items)
    rows = classified.rows
    parameters = body.parameters
    top_k = (parameters or {}).get("top_k")
    if isinstance(top_k, int) and top_k > 0:
        rows = [row[:top_k] for row in rows]
    nested = not single or parameters is not None or request.header(b"user-agent").startswith("@huggingface/inference")
    texts = [text for item in items for text in ([item] if isinstance(item, str) else item)]
    return json_response(rows if nested else rows[0], headers=compute_headers(classified.usage, texts, started_s))


def _items(inputs: str | list[str | list[str]]) -> tuple[list[str | tuple[str, str]], bool]:
    """Texts and pairs, and whether it is one item without a list around it.

    Raises:
        SchemaError: A list that is neither a text nor a pair.
    """
    if isinstance(inputs, str):
        return [inputs], True
    if len(inputs) == 2 and isinstance(inputs[0], str) and isinstance(inputs[1], str):
        return [(inputs[0], inputs[1])], True
    if not inputs:
        raise SchemaError("inputs: must hold at least one item.", loc=("inputs",), kind="too_short")
    items: list[str | tuple[str, str]] = []
    for index, item in enumerate(inputs):
        if isinstance(item, str):
            items.append(item)
        elif len(item) == 1:
            items.append(item[0])
        elif len(item) == 2:
            items.append((item[0], item[1]))
        else:
            raise SchemaError(f"inputs.{index}: must be one text or a pair.", loc=("inputs", index))
    return items, False
