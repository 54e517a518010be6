"""Results that are no single vector a text: sparse weights, a vector a token, and chunks embedded in their context."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pybase64 import b64encode_as_string

from infinity_emb.errors import CapabilityError
from infinity_emb.server.embedding import fingerprint_headers, usage_headers, usage_of
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.identity import new_id
from infinity_emb.server.options import call_of, embed_options, output_form
from infinity_emb.server.response import json_response
from infinity_emb.server.vectors import finished, rows
from infinity_emb.types import EmbeddingDtype, EmbedResult, Modality, Task, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.server.fields import EmbedFields
    from infinity_emb.server.inputs import Inputs
    from infinity_emb.server.openai import EmbeddingBody
    from infinity_emb.server.options import OutputForm
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.serving import Serving
    from infinity_emb.types import FloatArray, SparseResult

OUTPUTS = {
    "dense": Task.EMBED,
    "muvera": Task.MULTI_VECTOR,
    "sparse": Task.SPARSE,
    "multi_vector": Task.MULTI_VECTOR,
}
_OTHERS = (Task.MULTI_VECTOR, Task.SPARSE)
# How each is named in the metrics.
_COUNTED = {"dense": "embed", "muvera": "embed", "sparse": "sparse", "multi_vector": "multi_vector"}


class Written(NamedTuple):
    """One kind of result, ready for JSON.

    Attributes:
        engine: Who made it.
        fields: For each input the keys and values that go into its entry.
        usage: Tokens and truncations.
    """

    engine: AsyncEmbeddingEngine
    fields: list[dict[str, Any]]
    usage: Usage


def is_special(serving: Serving, body: EmbeddingBody) -> bool:
    """Whether a request is for something else than one vector a text."""
    if body.outputs or body.late_chunking:
        return True
    tasks = serving.models.find(body.model, Task.EMBED, *_OTHERS).card.tasks
    return Task.EMBED not in tasks and any(task in tasks for task in _OTHERS)


async def answer(request: Request, serving: Serving, body: EmbeddingBody, inputs: Inputs) -> Response:
    """OpenAI's envelope around the results that were asked for."""
    if inputs.modality is not Modality.TEXT:
        raise SchemaError("modality: only 'text' can be combined with `outputs` or `late_chunking`.", loc=("modality",))
    if body.late_chunking:
        made = [await _one_document(request, serving, body, inputs)]
    else:
        engine, names = _wanted(serving, body)
        if engine.gives_together and len(names) > 1:
            made = await _together(request, serving, engine, body, inputs, names)
        else:
            made = [await _output(request, serving, body, inputs, name) for name in names]
    engine, usage = made[0].engine, made[0].usage
    entries: list[dict[str, Any]] = [{"object": "embedding", "index": index} for index in range(len(made[0].fields))]
    for part in made:
        for entry, fields in zip(entries, part.fields, strict=True):
            entry.update(
                ("multi_vector" if key == "embedding" and key in entry else key, fields[key]) for key in fields
            )
    envelope = {
        "object": "list",
        "data": entries,
        "model": engine.card.served_name,
        "usage": usage_of(usage),
        "id": f"infinity-{new_id()}",
        "created": int(time.time()),
    }
    return json_response(envelope, headers=[*usage_headers(usage), *fingerprint_headers(engine)])


async def pooling(request: Request, serving: Serving, body: EmbeddingBody, inputs: Inputs) -> Response:
    """The answer of vLLM: what the model gives, or a vector a token with `task` "token_embed"."""
    engine = serving.models.find(body.model, Task.EMBED, *_OTHERS)
    name = "dense" if Task.EMBED in engine.card.tasks and body.task != "token_embed" else "multi_vector"
    made = await _output(request, serving, body, inputs, name)
    envelope = {
        "id": f"pool-{new_id()}",
        "object": "list",
        "created": int(time.time()),
        "model": made.engine.card.served_name,
        "data": [
            {"index": index, "object": "pooling", "data": fields["embedding"]}
            for index, fields in enumerate(made.fields)
        ],
        "usage": usage_of(made.usage),
    }
    return json_response(envelope, headers=[*usage_headers(made.usage), *fingerprint_headers(made.engine)])


async def sparse(
    request: Request, serving: Serving, fields: EmbedFields, inputs: Inputs
) -> tuple[AsyncEmbeddingEngine, SparseResult]:
    """Weights of the words of each text, and who made them."""
    engine = serving.models.find(fields.model, Task.SPARSE)
    result = await engine.sparse_result(
        inputs.items, embed_options(fields, engine), call_of(request, fields, engine, "embeddings")
    )
    _count(serving, engine, "sparse", len(inputs.items), result.usage)
    return engine, result


async def tokens(
    request: Request, serving: Serving, fields: EmbedFields, inputs: Inputs
) -> tuple[AsyncEmbeddingEngine, list[FloatArray], Usage]:
    """A vector a token of each text, and who made them."""
    engine = serving.models.find(fields.model, Task.MULTI_VECTOR, Task.EMBED)
    result = await engine.multi_vector_result(
        inputs.items, embed_options(fields, engine), call_of(request, fields, engine, "embeddings")
    )
    _count(serving, engine, "multi_vector", len(inputs.items), result.usage)
    return engine, result.vectors, result.usage


async def chunks(
    request: Request, serving: Serving, fields: EmbedFields, documents: Sequence[Sequence[str]]
) -> Written:
    """Late chunking: the fields of every chunk of all documents, in order."""
    engine = serving.models.find(fields.model, Task.EMBED)
    form = output_form(fields, engine)
    result = await engine.chunks_result(
        documents, embed_options(fields, engine), call_of(request, fields, engine, "embeddings")
    )
    _count(serving, engine, "embed", sum(map(len, documents)), result.usage)
    vectors = finished(EmbedResult(result.vectors, result.usage), form.dtype, engine)
    spans = [span for places in result.spans for span in places]
    written = [
        {"embedding": row, "span": list(span)}
        for row, span in zip(rows(vectors, base64=form.base64), spans, strict=True)
    ]
    return Written(engine, written, result.usage)


async def _one_document(request: Request, serving: Serving, body: EmbeddingBody, inputs: Inputs) -> Written:
    """Jina's form: the list of inputs is one document."""
    if body.outputs:
        raise SchemaError(
            "outputs: cannot be combined with `late_chunking`, which gives dense vectors.", loc=("outputs",)
        )
    parts = [item for item in inputs.items if isinstance(item, str)]
    if len(parts) != len(inputs.items):
        raise SchemaError("input: `late_chunking` needs texts, not token ids.", loc=("input",))
    return await chunks(request, serving, body, [parts])


async def _output(request: Request, serving: Serving, body: EmbeddingBody, inputs: Inputs, name: str) -> Written:
    if name == "sparse":
        engine, weighed = await sparse(request, serving, body, inputs)
        return _weights(engine, weighed)
    if name == "multi_vector":
        engine, matrices, usage = await tokens(request, serving, body, inputs)
        return _matrices(engine, body, matrices, usage)
    engine = serving.models.find(body.model, OUTPUTS[name])
    make = engine.fixed_result if name == "muvera" else engine.embed_result
    result = await make(inputs.items, embed_options(body, engine), call_of(request, body, engine, "embeddings"))
    _count(serving, engine, "embed", len(inputs.items), result.usage)
    return _vectors(engine, body, result)


async def _together(
    request: Request,
    serving: Serving,
    engine: AsyncEmbeddingEngine,
    body: EmbeddingBody,
    inputs: Inputs,
    names: list[str],
) -> list[Written]:
    """Several outputs of one forward pass, whose tokens are counted once."""
    made = await engine.several_result(
        inputs.items, names, embed_options(body, engine), call_of(request, body, engine, "embeddings")
    )
    written = [_vectors(engine, body, result) for result in (made.dense, made.muvera) if result is not None]
    if made.sparse is not None:
        written.append(_weights(engine, made.sparse))
    if made.multi_vector is not None:
        written.append(_matrices(engine, body, made.multi_vector.vectors, made.multi_vector.usage))
    usage = written[0].usage
    for name in names:
        _count(serving, engine, _COUNTED[name], len(inputs.items), usage)
        usage = Usage(0)
    return written


def _vectors(engine: AsyncEmbeddingEngine, body: EmbeddingBody, result: EmbedResult) -> Written:
    form = output_form(body, engine)
    vectors = finished(result, form.dtype, engine)
    return Written(engine, [{"embedding": row} for row in rows(vectors, base64=form.base64)], result.usage)


def _weights(engine: AsyncEmbeddingEngine, result: SparseResult) -> Written:
    pairs = zip(result.indices, result.weights, strict=True)
    fields = [{"sparse_embedding": {"indices": index, "values": values}} for index, values in pairs]
    return Written(engine, fields, result.usage)


def _matrices(
    engine: AsyncEmbeddingEngine, body: EmbeddingBody, matrices: Sequence[FloatArray], usage: Usage
) -> Written:
    form = output_form(body, engine)
    return Written(engine, [_matrix(matrix, form, engine) for matrix in matrices], usage)


def _wanted(serving: Serving, body: EmbeddingBody) -> tuple[AsyncEmbeddingEngine, list[str]]:
    """Who makes the outputs, and their names; the model's own kind where none is named.

    Raises:
        SchemaError: A name that does not exist.
        CapabilityError: The model gives none of that kind.
    """
    names = list(dict.fromkeys(body.outputs or ()))
    for name in names:
        if name not in OUTPUTS:
            allowed = ", ".join(map(repr, OUTPUTS))
            raise SchemaError(
                f"outputs: {name[:80]!r} is not known; allowed are {allowed}.", loc=("outputs",), kind="enum"
            )
    tasks = [OUTPUTS[name] for name in names]
    engine = serving.models.find(body.model, *tasks, *_OTHERS)
    able = engine.card.tasks
    if not names:
        return engine, ["multi_vector" if Task.MULTI_VECTOR in able else "sparse"]
    for name, task in zip(names, tasks, strict=True):
        if task not in able and not (name == "multi_vector" and Task.EMBED in able):
            offered = ", ".join(sorted(kind for kind, one in OUTPUTS.items() if one in able)) or "none of these"
            raise CapabilityError(
                f"The model {engine.card.served_name!r} gives no {name} output; it gives: {offered}. "
                f"{engine.card.extra.get('withheld', '')}".rstrip(),
                param="outputs",
            )
    return engine, sorted(names, key=list(OUTPUTS).index)


def _matrix(matrix: FloatArray, form: OutputForm, engine: AsyncEmbeddingEngine) -> dict[str, Any]:
    """A matrix as nested lists, or as base64 of its little-endian numbers, row after row, with its shape."""
    numbers: Any = matrix
    if form.dtype is not EmbeddingDtype.FLOAT32:
        numbers = engine.quantize(matrix, form.dtype)
    numbers = np.ascontiguousarray(numbers, dtype="<f4" if form.dtype is EmbeddingDtype.FLOAT32 else None)
    shape = list(numbers.shape)
    if form.base64:
        return {"embedding": b64encode_as_string(numbers), "shape": shape}
    return {"embedding": list(numbers), "shape": shape}


def _count(serving: Serving, engine: AsyncEmbeddingEngine, task: str, items: int, usage: Usage) -> None:
    serving.metrics.record_work(
        engine.card.served_name, task, items=items, tokens=usage.prompt_tokens, truncated=len(usage.truncated)
    )
