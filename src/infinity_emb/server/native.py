"""Infinity's own routes beyond embeddings and rerank: classify, and the two deprecated media routes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from infinity_emb.server import cohere, openai
from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.embedding import usage_headers, usage_of
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import ScoreFields, TextOrTokens
from infinity_emb.server.identity import new_id
from infinity_emb.server.inputs import read_inputs
from infinity_emb.server.response import json_response
from infinity_emb.server.scoring import classify as score_labels

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.serving import Serving


class ClassifyBody(ScoreFields, kw_only=True):
    """Body of `/classify`: `input`, or Cohere's `inputs`."""

    input: Annotated[TextOrTokens | None, Meta(description="One text or several.")] = None
    inputs: Annotated[list[str] | None, Meta(description="Cohere's name; the answer is then Cohere's.")] = None


_CLASSIFY = decoder_for(ClassifyBody)
_EMBED = decoder_for(openai.EmbeddingBody)


async def classify(request: Request, serving: Serving) -> Response:
    """Scores of every label of each text."""
    body = decode_body(request, _CLASSIFY)
    if body.input is None and body.inputs is not None:
        if not body.inputs:
            raise SchemaError("inputs: must hold at least one item.", loc=("inputs",), kind="too_short")
        return cohere.classifications(await score_labels(request, serving, body, body.inputs), body.inputs)
    inputs = read_inputs(body.input, serving.settings)
    classified = await score_labels(request, serving, body, inputs.items)
    answer = {
        "object": "classify",
        "data": classified.rows,
        "model": classified.model,
        "usage": usage_of(classified.usage),
        "id": f"infinity-{new_id()}",
        "created": int(time.time()),
    }
    return json_response(answer, headers=usage_headers(classified.usage))


async def embeddings_image(request: Request, serving: Serving) -> Response:
    """Vectors of images (deprecated: `/embeddings` with `modality`)."""
    return await _embeddings_of(request, serving, "image")


async def embeddings_audio(request: Request, serving: Serving) -> Response:
    """Vectors of sounds (deprecated: `/embeddings` with `modality`)."""
    return await _embeddings_of(request, serving, "audio")


async def _embeddings_of(request: Request, serving: Serving, modality: str) -> Response:
    body = decode_body(request, _EMBED)
    body.modality = modality
    return await openai.answer(request, serving, body, openai.read_body_inputs(body, serving.settings))
