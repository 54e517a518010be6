"""Voyage's contextualised and multimodal embeddings; its plain ones and its rerank share the paths of the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from infinity_emb.errors import CapabilityError
from infinity_emb.server import kinds
from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.embedding import embed, fingerprint_headers, usage_headers, usage_of
from infinity_emb.server.envelope import envelope
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import EmbedFields
from infinity_emb.server.inputs import Inputs, read_inputs
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
    """One vector a chunk, grouped by document, in the context of the others.

    A model that cannot do that (`chunks_result`) embeds each chunk by itself; `x-late-chunking` tells which it was.
    """
    body = decode_body(request, _CONTEXTUAL)
    for index, document in enumerate(body.inputs):
        if not document:
            raise SchemaError(f"inputs.{index}: a document must hold at least one chunk.", loc=("inputs", index))
    try:
        made = await kinds.chunks(request, serving, body, body.inputs)
    except CapabilityError as error:
        if error.param != "late_chunking":
            raise
        made = await _apart(request, serving, body)
    seen = b"true" if "span" in made.fields[0] else b"false"
    written = iter(made.fields)
    groups = [
        {
            "object": "list",
            "data": [{"object": "embedding", "index": position, **next(written)} for position in range(len(document))],
            "index": index,
        }
        for index, document in enumerate(body.inputs)
    ]
    model = made.engine.card.served_name
    answer = {"object": "list", "data": groups, "model": model, "usage": usage_of(made.usage)}
    headers = [*usage_headers(made.usage), *fingerprint_headers(made.engine), (b"x-late-chunking", seen)]
    return json_response(answer, headers=headers)


async def _apart(request: Request, serving: Serving, body: ContextualBody) -> kinds.Written:
    """Every chunk by itself."""
    chunks = [chunk for document in body.inputs for chunk in document]
    embedded = await embed(request, serving, body, Inputs(Modality.TEXT, chunks))
    written = rows(embedded.vectors, base64=embedded.form.base64)
    return kinds.Written(embedded.engine, [{"embedding": row} for row in written], embedded.usage)


async def multimodal(request: Request, serving: Serving) -> Response:
    """One vector an input; the parts of an input must be of one kind."""
    body = decode_body(request, _MULTIMODAL)
    inputs = read_inputs(body.inputs, serving.settings, "inputs")  # type: ignore[arg-type]  # list is invariant
    embedded = await embed(request, serving, body, inputs)
    answer = envelope(embedded)
    usage = embedded.usage
    text_tokens = usage.prompt_tokens - usage.media_tokens
    answer["usage"] |= {"text_tokens": text_tokens, "image_pixels": usage.image_pixels, "video_pixels": 0}
    return json_response(answer, headers=embedded.headers)
