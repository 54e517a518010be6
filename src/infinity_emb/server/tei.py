"""TEI's routes: embed, predict, similarity, tokenize, decode, info, and the three doors that pick by model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from infinity_emb.server import cohere, kinds
from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.embedding import embed as embed_inputs
from infinity_emb.server.embedding import fingerprint_headers, usage_headers
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import EmbedFields, TextOrTokens
from infinity_emb.server.inputs import Inputs, read_inputs
from infinity_emb.server.response import json_response
from infinity_emb.server.vectors import binary_response, rows
from infinity_emb.types import Modality, Task

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Headers, Response
    from infinity_emb.server.serving import Serving
    from infinity_emb.types import Usage


class TeiEmbedBody(EmbedFields, kw_only=True):
    """Body of `/embed`: TEI's `inputs`, or Cohere's `texts` and `images`."""

    inputs: Annotated[TextOrTokens | None, Meta(description="A string, a list of strings, or token ids.")] = None
    texts: Annotated[list[str] | None, Meta(description="Cohere's texts; the answer is then Cohere's.")] = None
    images: Annotated[list[str] | None, Meta(description="Cohere's images; the answer is then Cohere's.")] = None
    embedding_types: list[str] | None = None


class Similarity(msgspec.Struct):
    """A sentence and those it is compared with."""

    source_sentence: str
    sentences: Annotated[list[str], Meta(min_length=1)]


class SimilarityBody(EmbedFields, kw_only=True):
    """Body of `/similarity`."""

    inputs: Similarity
    parameters: dict[str, Any] | None = None


_EMBED = decoder_for(TeiEmbedBody)
_SIMILARITY = decoder_for(SimilarityBody)


async def embed(request: Request, serving: Serving) -> Response:
    """A bare list of vectors; Cohere's answer if the body is Cohere's."""
    body = decode_body(request, _EMBED)
    if body.inputs is None and (body.texts is not None or body.images is not None):
        request.dialect = ""
        return await cohere.answer(request, serving, _as_cohere(body), plain_default=True)
    if isinstance(body.inputs, list) and body.inputs and isinstance(body.inputs[0], dict):
        request.dialect = ""
        return await cohere.answer(request, serving, _as_cohere(body), plain_default=False)
    return await embed_body(request, serving, body)


async def embed_body(request: Request, serving: Serving, body: TeiEmbedBody) -> Response:
    """TEI's answer to inputs that are already decoded."""
    started_s = time.perf_counter()
    inputs = read_inputs(body.inputs, serving.settings, "inputs")
    embedded = await embed_inputs(request, serving, body, inputs)
    headers = [*compute_headers(embedded.usage, inputs.items, started_s), *fingerprint_headers(embedded.engine)]
    compact = binary_response(request, embedded.vectors, embedded.form)
    if compact is not None:
        compact.headers += headers
        return compact
    return json_response(rows(embedded.vectors, base64=embedded.form.base64), headers=headers)


async def similarity(request: Request, serving: Serving) -> Response:
    """Cosine of one sentence to each of several."""
    return await similarity_body(request, serving, decode_body(request, _SIMILARITY))


async def similarity_body(request: Request, serving: Serving, body: SimilarityBody) -> Response:
    """TEI's answer to a comparison that is already decoded."""
    started_s = time.perf_counter()
    for name in ("truncate", "truncation_direction", "prompt_name"):
        value = (body.parameters or {}).get(name)
        if value is not None and not isinstance(value, (str, bool)):
            raise SchemaError(f"parameters.{name}: must be a string or a boolean.", loc=("parameters", name))
        if value is not None:
            setattr(body, name, value if name == "truncate" else str(value))
    texts = [body.inputs.source_sentence, *body.inputs.sentences]
    embedded = await embed_inputs(request, serving, body, Inputs(Modality.TEXT, texts))
    vectors = embedded.result.vectors
    lengths = np.maximum(np.linalg.norm(vectors, axis=1), np.finfo(np.float32).tiny)
    cosines = (vectors[1:] @ vectors[0]) / (lengths[1:] * lengths[0])
    return json_response(cosines.tolist(), headers=compute_headers(embedded.usage, texts, started_s))


async def embed_sparse(request: Request, serving: Serving) -> Response:
    """For each input the words that weigh something."""
    return await sparse_body(request, serving, decode_body(request, _EMBED))


async def sparse_body(request: Request, serving: Serving, body: TeiEmbedBody) -> Response:
    """TEI's sparse answer to inputs that are already decoded."""
    started_s = time.perf_counter()
    inputs = read_inputs(body.inputs, serving.settings, "inputs")
    engine, result = await kinds.sparse(request, serving, body, inputs)
    written = [
        [{"index": index, "value": value} for index, value in zip(words.tolist(), weights.tolist(), strict=True)]
        for words, weights in zip(result.indices, result.weights, strict=True)
    ]
    headers = [*compute_headers(result.usage, inputs.items, started_s), *fingerprint_headers(engine)]
    return json_response(written, headers=headers)


async def embed_all(request: Request, serving: Serving) -> Response:
    """For each input a vector a token."""
    started_s = time.perf_counter()
    body = decode_body(request, _EMBED)
    inputs = read_inputs(body.inputs, serving.settings, "inputs")
    engine, vectors, usage = await kinds.tokens(request, serving, body, inputs)
    headers = [*compute_headers(usage, inputs.items, started_s), *fingerprint_headers(engine)]
    return json_response([list(matrix) for matrix in vectors], headers=headers)


def compute_headers(usage: Usage, items: Any, started_s: float) -> Headers:
    """TEI's timing headers; times are milliseconds of the whole request."""
    took_ms = str(round((time.perf_counter() - started_s) * 1000)).encode()
    characters = sum(len(item) for item in items if isinstance(item, str))
    return [
        (b"x-compute-type", b"cpu+infinity"),
        (b"x-compute-time", took_ms),
        (b"x-total-time", took_ms),
        (b"x-inference-time", took_ms),
        (b"x-compute-characters", str(characters).encode()),
        (b"x-compute-tokens", str(usage.prompt_tokens).encode()),
        *usage_headers(usage),
    ]


def _as_cohere(body: TeiEmbedBody) -> cohere.CohereEmbedBody:
    shared = {name: getattr(body, name) for name in EmbedFields.__struct_fields__}
    inputs: Any = body.inputs
    return cohere.CohereEmbedBody(
        texts=body.texts, images=body.images, inputs=inputs, embedding_types=body.embedding_types, **shared
    )


def task_of(serving: Serving, name: str | None) -> Task:
    """What the model behind a name is for; of several tasks the first."""
    serving.models.check_open()
    engines = list(serving.models)
    chosen = next((engine for engine in engines if engine.card.served_name == name), engines[0])
    return next(task for task in Task if task in chosen.card.tasks)
