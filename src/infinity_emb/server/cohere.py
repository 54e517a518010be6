"""Cohere's v1 and v2 embed, its classify answer, and its tokenize and detokenize."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.embedding import embed, usage_headers
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import EmbedFields, TextFields
from infinity_emb.server.identity import new_id
from infinity_emb.server.inputs import Inputs, read_inputs
from infinity_emb.server.options import embedding_dtype
from infinity_emb.server.rerank import meta
from infinity_emb.server.response import json_response
from infinity_emb.server.vectors import finished, rows
from infinity_emb.types import EmbeddingDtype, Modality, Task

if TYPE_CHECKING:
    from infinity_emb.server.embedding import Embedded
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.scoring import Classified
    from infinity_emb.server.serving import Serving

_TYPES = ("float", "int8", "uint8", "binary", "ubinary", "base64")


class CohereEmbedBody(EmbedFields, kw_only=True):
    """Body of `/v1/embed` and `/v2/embed`: `texts`, `images` or `inputs`."""

    texts: Annotated[list[str] | None, Meta(description="Texts to embed.")] = None
    images: Annotated[list[str] | None, Meta(description="Images as data URIs.")] = None
    inputs: Annotated[
        list[dict[str, Any]] | None, Meta(description="Objects with `content` parts of type text or image_url.")
    ] = None
    embedding_types: Annotated[
        list[str] | None, Meta(description="Any of float, int8, uint8, binary, ubinary and base64, several at once.")
    ] = None


class TokenizeBody(TextFields, kw_only=True):
    """Body of `/v1/tokenize`."""

    text: str


class DetokenizeBody(TextFields, kw_only=True):
    """Body of `/v1/detokenize`."""

    tokens: list[int]


_EMBED = decoder_for(CohereEmbedBody)
_TOKENIZE = decoder_for(TokenizeBody)
_DETOKENIZE = decoder_for(DetokenizeBody)


async def embed_v1(request: Request, serving: Serving) -> Response:
    """Vectors; a plain list unless `embedding_types` asks for an object by type."""
    body = decode_body(request, _EMBED)
    return await answer(request, serving, body, plain_default=True)


async def embed_v2(request: Request, serving: Serving) -> Response:
    """Vectors by type."""
    body = decode_body(request, _EMBED)
    return await answer(request, serving, body, plain_default=False)


async def answer(request: Request, serving: Serving, body: CohereEmbedBody, *, plain_default: bool) -> Response:
    """Embed and write in each of the wanted types."""
    _check_types(body.embedding_types)
    inputs = _inputs(body, serving)
    embedded = await embed(request, serving, body, inputs)
    vectors: Any
    if not body.embedding_types and plain_default:
        kind, vectors = "embeddings_floats", rows(embedded.vectors, base64=embedded.form.base64)
    else:
        kind, vectors = "embeddings_by_type", _by_type(embedded, body.embedding_types or ["float"])
    written = {
        "id": new_id(),
        "response_type": kind,
        "embeddings": vectors,
        "texts": list(inputs.items) if inputs.modality is Modality.TEXT else [],
        "model": embedded.model,
        "meta": meta(embedded.usage, input_tokens=embedded.usage.prompt_tokens),
    }
    return json_response(written, headers=embedded.headers)


async def tokenize(request: Request, serving: Serving) -> Response:
    """Token ids and texts of one text, without special tokens."""
    body = decode_body(request, _TOKENIZE)
    engine = serving.models.find(body.model, Task.EMBED)
    # In a thread: a long text takes long, and the tokenizer lets other threads run.
    (tokens,) = await asyncio.to_thread(engine.tokenize, [body.text], add_special_tokens=False)
    written = {
        "tokens": [token.id for token in tokens],
        "token_strings": [token.text for token in tokens],
        "meta": {"api_version": {"version": "1"}},
    }
    return json_response(written)


async def detokenize(request: Request, serving: Serving) -> Response:
    """Text of token ids."""
    body = decode_body(request, _DETOKENIZE)
    engine = serving.models.find(body.model, Task.EMBED)
    (text,) = engine.decode([body.tokens])
    return json_response({"text": text, "meta": {"api_version": {"version": "1"}}})


def classifications(classified: Classified, texts: list[str]) -> Response:
    """Cohere's answer to classify."""
    kind = "single-label"
    entries = []
    for text, row in zip(texts, classified.rows, strict=True):
        entries.append(
            {
                "id": new_id(),
                "input": text,
                "prediction": row[0]["label"],
                "predictions": [row[0]["label"]],
                "confidence": row[0]["score"],
                "confidences": [row[0]["score"]],
                "labels": {label["label"]: {"confidence": label["score"]} for label in row},
                "classification_type": kind,
            }
        )
    usage = classified.usage
    written = {
        "id": new_id(),
        "classifications": entries,
        "model": classified.model,
        "meta": meta(usage, classifications=len(entries)),
    }
    return json_response(written, headers=usage_headers(usage))


def _inputs(body: CohereEmbedBody, serving: Serving) -> Inputs:
    """Whichever of the three fields holds the inputs.

    Raises:
        SchemaError: None of them does.
    """
    if body.texts is not None:
        return read_inputs(body.texts, serving.settings, "texts")  # type: ignore[arg-type]  # list is invariant
    if body.images is not None:
        read = read_inputs(body.images, serving.settings, "images")  # type: ignore[arg-type]  # list is invariant
        return Inputs(Modality.IMAGE, read.items)
    if body.inputs is not None:
        return read_inputs(body.inputs, serving.settings, "inputs")  # type: ignore[arg-type]  # list is invariant
    raise SchemaError("texts: one of texts, images and inputs is required.", loc=("texts",), kind="missing")


def _check_types(names: list[str] | None) -> None:
    for name in names or ():
        if name not in _TYPES:
            raise SchemaError(
                f"embedding_types: {name[:80]!r} is not known; allowed are {', '.join(map(repr, _TYPES))}.",
                loc=("embedding_types",),
                kind="enum",
            )


def _by_type(embedded: Embedded, names: list[str]) -> dict[str, list[Any]]:
    """Each wanted type from the same float32 vectors; base64 is that of the float32 numbers."""
    written = {}
    for name in dict.fromkeys(names):
        dtype = EmbeddingDtype.FLOAT32 if name == "base64" else embedding_dtype(name)
        vectors = finished(embedded.result, dtype, embedded.engine)
        written[name] = rows(vectors, base64=name == "base64")
    return written
