"""`/models`: what is served, for Infinity's, OpenAI's, vLLM's and Cohere's clients in one answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from infinity_emb.engine.media_face import capabilities_of
from infinity_emb.server.errors import ModelRouteNotFoundError
from infinity_emb.server.response import json_response
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.serving import Serving

_COHERE_ENDPOINTS = {Task.EMBED: "embed", Task.RERANK: "rerank", Task.CLASSIFY: "classify"}


async def models(_: Request, serving: Serving) -> Response:
    """Every served model."""
    serving.models.check_open()
    entries = [model_entry(engine) for engine in serving.models]
    cohere = [_cohere_entry(engine) for engine in serving.models]
    return json_response({"object": "list", "data": entries, "models": cohere})


async def model(request: Request, serving: Serving) -> Response:
    """One served model, by its served name."""
    serving.models.check_open()
    name = request.params["model"]
    for engine in serving.models:
        if engine.card.served_name == name:
            return json_response(model_entry(engine))
    known = ", ".join(repr(engine.card.served_name) for engine in serving.models)
    raise ModelRouteNotFoundError(
        f"No model is served as {name[:200]!r}; the served models are {known}.", param="model"
    )


def model_entry(engine: AsyncEmbeddingEngine) -> dict[str, Any]:
    """One element of `data`; the keys up to `capabilities` are Infinity's contract."""
    card = engine.card
    status = engine.overload_status()
    return {
        "id": card.served_name,
        "object": "model",
        "owned_by": "infinity",
        "created": int(time.time()),
        "backend": card.backend,
        "stats": {
            "queue_fraction": status.queue_fraction,
            "queue_absolute": status.queue_absolute,
            "results_pending": status.results_absolute,
            "batch_size": card.batch_size,
        },
        "capabilities": capabilities_of(card),
        "root": card.model_id,
        "revision": card.revision,
        "source": card.source,
        "device": card.device,
        "dtype": card.dtype,
        "embedding_dtype": str(engine.engine_args.embedding_dtype),
        "dimensions": card.dim,
        "max_model_len": card.max_length,
        "pooling": card.pooling,
        "normalized": card.normalized,
        "modalities": sorted(modality.value for modality in card.modalities),
        "labels": list(card.labels),
        "prompts": card.prompts,
        "default_prompt_name": card.default_prompt_name,
        "fingerprint": card.extra.get("fingerprint"),
        "details": card.extra,
    }


def _cohere_entry(engine: AsyncEmbeddingEngine) -> dict[str, Any]:
    card = engine.card
    return {
        "name": card.served_name,
        "endpoints": [name for task, name in _COHERE_ENDPOINTS.items() if task in card.tasks],
        "finetuned": False,
        "context_length": card.max_length,
    }
