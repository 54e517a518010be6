"""TEI's `/tokenize`, `/decode` and `/info`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import TextFields
from infinity_emb.server.response import json_response
from infinity_emb.server.tei import task_of
from infinity_emb.server.version import package_version
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.serving import Serving


class TeiTokenizeBody(TextFields, kw_only=True):
    """Body of `/tokenize`."""

    inputs: str | list[str]
    add_special_tokens: bool | None = None


class TeiDecodeBody(TextFields, kw_only=True):
    """Body of `/decode`."""

    ids: Annotated[list[int | list[int]], Meta(min_length=1, description="Ids of one text, or of several.")]
    skip_special_tokens: bool | None = None


_TOKENIZE = decoder_for(TeiTokenizeBody)
_DECODE = decoder_for(TeiDecodeBody)


async def tokenize(request: Request, serving: Serving) -> Response:
    """Tokens of each text, with their byte offsets."""
    body = decode_body(request, _TOKENIZE)
    engine = serving.models.find(body.model, Task.EMBED)
    texts = [body.inputs] if isinstance(body.inputs, str) else body.inputs
    if not texts:
        raise SchemaError("inputs: must hold at least one item.", loc=("inputs",), kind="too_short")
    special = body.add_special_tokens is not False
    # In a thread: a long text takes long, and the tokenizer lets other threads run.
    found = await asyncio.to_thread(engine.tokenize, texts, add_special_tokens=special, prompt_name=body.prompt_name)
    return json_response([[token._asdict() for token in tokens] for tokens in found])


async def decode(request: Request, serving: Serving) -> Response:
    """Text of each list of ids."""
    body = decode_body(request, _DECODE)
    engine = serving.models.find(body.model, Task.EMBED)
    lists = [item for item in body.ids if isinstance(item, list)]
    flat = [item for item in body.ids if isinstance(item, int)]
    if lists and flat:
        raise SchemaError("ids: must be one list of ids or a list of such lists, not both.", loc=("ids",))
    return json_response(engine.decode(lists or [flat], skip_special_tokens=body.skip_special_tokens is not False))


async def info(_: Request, serving: Serving) -> Response:
    """Facts about the first model, as TEI's clients read them to size their batches."""
    serving.models.check_open()
    engine = next(iter(serving.models))
    card = engine.card
    args = engine.engine_args
    answer: dict[str, Any] = {
        "model_id": card.model_id,
        "model_sha": card.revision,
        "model_dtype": card.dtype,
        "served_model_name": card.served_name,
        "model_type": _model_type(engine, task_of(serving, card.served_name)),
        "max_concurrent_requests": args.queue_size,
        "max_input_length": card.max_length,
        "max_batch_tokens": args.max_batch_tokens or card.max_length * card.batch_size,
        "max_batch_requests": card.batch_size,
        "max_client_batch_size": args.max_client_batch_size,
        "auto_truncate": True,
        "tokenization_workers": args.threads or 1,
        "version": package_version(),
        "sha": None,
        "docker_label": None,
    }
    return json_response(answer)


def _model_type(engine: AsyncEmbeddingEngine, task: Task) -> dict[str, Any]:
    """TEI's enumeration: one key, which clients take for the kind of model."""
    card = engine.card
    if task is Task.SPARSE:
        return {"embedding": {"pooling": "splade"}}
    if task is Task.EMBED:
        return {"embedding": {"pooling": card.pooling}}
    labels = card.labels or ("LABEL_0",)
    names = {
        "id2label": {str(index): label for index, label in enumerate(labels)},
        "label2id": {label: index for index, label in enumerate(labels)},
    }
    return {"reranker" if task is Task.RERANK else "classifier": names}
