"""Vectors for requests that hold images or sounds, by themselves or between texts."""

from __future__ import annotations

import asyncio
import base64
import binascii
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.errors import InvalidInputError
from infinity_emb.types import EmbedResult, Modality, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.server.inputs import Inputs
    from infinity_emb.types import Call, EmbedOptions, TextInput


async def embed_media(
    engine: AsyncEmbeddingEngine, inputs: Inputs, options: EmbedOptions, call: Call | None
) -> EmbedResult:
    """Vectors in input order; those of each modality are made at the same time.

    Raises: as `AsyncEmbeddingEngine.media_result` and `embed_result`.
    """
    if not inputs.mixed:
        return await engine.media_result([_source(item) for item in inputs.items], inputs.modality, options, call)
    places: dict[Modality, list[int]] = {}
    for place, modality in enumerate(inputs.mixed):
        places.setdefault(modality, []).append(place)
    work = [
        asyncio.ensure_future(_embed_some(engine, inputs, modality, found, options, call))
        for modality, found in places.items()
    ]
    try:
        results = await asyncio.gather(*work)
    finally:
        for one in work:
            one.cancel()
    vectors = np.empty((len(inputs.items), results[0].vectors.shape[1]), np.float32)
    for found, result in zip(places.values(), results, strict=True):
        vectors[found] = result.vectors
    return EmbedResult(vectors, _together([result.usage for result in results], list(places.values())))


async def _embed_some(
    engine: AsyncEmbeddingEngine,
    inputs: Inputs,
    modality: Modality,
    places: list[int],
    options: EmbedOptions,
    call: Call | None,
) -> EmbedResult:
    """The inputs of one modality."""
    items = [inputs.items[place] for place in places]
    if modality is not Modality.TEXT:
        return await engine.media_result([_source(item) for item in items], modality, options, call, places)
    try:
        return await engine.embed_result(items, options, call)
    except InvalidInputError as error:
        raise InvalidInputError(f"Among the texts of this request: {error.message}", param=error.param) from error


def _together(usages: Sequence[Usage], places: Sequence[list[int]]) -> Usage:
    """What a request cost, items numbered as they stand in it."""
    pairs = list(zip(usages, places, strict=True))
    return Usage(
        sum(usage.prompt_tokens for usage in usages),
        tuple(sorted(found[item] for usage, found in pairs for item in usage.truncated)),
        tuple(sorted(found[item] for usage, found in pairs for item in usage.averaged)),
        sum(usage.media_tokens for usage in usages),
        sum(usage.image_pixels for usage in usages),
    )


def _source(item: TextInput) -> Any:
    """A URL or data URI as it is; anything else is tried as bare base64, which some clients send."""
    if not isinstance(item, str) or item[:5].lower() == "data:" or "://" in item[:16]:
        return item
    try:
        return base64.b64decode(item, validate=True)
    except (binascii.Error, ValueError):
        return item
