"""Voyage's contextualised and multimodal embeddings; its plain ones and its rerank share the paths of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.embedding import embed, usage_of
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import EmbedFields
from infinity_emb.server.inputs import Inputs, read_inputs
from infinity_emb.server.openai import envelope
from infinity_emb.server.response import json_response
from infinity_emb.server.vectors import rows
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.serving import Serving


class ContextualBody(EmbedFields, kw_only=True):
    """Body of `/v1/contextualizedembeddings`: documents as lists of chunks."""

    inputs: Annotated[list[list[str]], Meta(min_length=1, description="For each document its chunks.")]


class MultimodalBody(EmbedFields, kw_only=True):
    """Body of `/v1/multimodalembeddings`."""

    inputs: Annotated[
        list[dict[str, Any]], Meta(min_length=1, description="Objects with `content` parts of text or image.")
    ]


_CONTEXTUAL = decoder_for(ContextualBody)
_MULTIMODAL = decoder_for(MultimodalBody)


async def contextualized(request: Request, serving: Serving) -> Response:
    """One vector a chunk, grouped by document.

    No model that is served here reads the neighbours of a chunk, so each chunk is embedded by itself.
    """
    body = decode_body(request, _CONTEXTUAL)
    chunks: list[Any] = []
    for index, document in enumerate(body.inputs):
        if not document:
            raise SchemaError(f"inputs.{index}: a document must hold at least one chunk.", loc=("inputs", index))
        chunks += document
    embedded = await embed(request, serving, body, Inputs(Modality.TEXT, chunks))
    written = iter(rows(embedded.vectors, base64=embedded.form.base64))
    groups = [
        {
            "object": "list",
            "data": [
                {"object": "embedding", "embedding": next(written), "index": position}
                for position in range(len(document))
            ],
            "index": index,
        }
        for index, document in enumerate(body.inputs)
    ]
    answer = {"object": "list", "data": groups, "model": embedded.model, "usage": usage_of(embedded.usage)}
    return json_response(answer, headers=embedded.headers)


async def multimodal(request: Request, serving: Serving) -> Response:
    """One vector an input; the parts of an input must be of one kind."""
    body = decode_body(request, _MULTIMODAL)
    inputs = read_inputs(body.inputs, serving.settings, "inputs")  # type: ignore[arg-type]  # list is invariant
    embedded = await embed(request, serving, body, inputs)
    answer = envelope(embedded, rows(embedded.vectors, base64=embedded.form.base64))
    answer["usage"] |= {"text_tokens": embedded.usage.prompt_tokens, "image_pixels": 0, "video_pixels": 0}
    return json_response(answer, headers=embedded.headers)
