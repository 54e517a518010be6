"""Fields that many requests share, each under all the names that dialects give it.

Explicit nulls mean absent, unknown fields are ignored, numbers and booleans may be written as strings.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec
from msgspec import Meta

PositiveInt: TypeAlias = Annotated[int, Meta(ge=1)]
TextOrTokens: TypeAlias = str | list[str | int | list[int] | dict[str, Any]]
Documents: TypeAlias = Annotated[list[str | dict[str, Any]], Meta(min_length=1)]


class TextFields(msgspec.Struct, kw_only=True):
    """Which model, and how texts are read."""

    model: Annotated[
        str | None,
        Meta(description="Served name. One model alone answers to any name; absent is the first fitting one."),
    ] = None
    prompt: Annotated[
        str | None, Meta(description="Text put before each input. The empty string switches the model's default off.")
    ] = None
    prompt_name: Annotated[str | None, Meta(description="Name of one of the model's own prompts.")] = None
    input_type: Annotated[
        str | None, Meta(description="`query` or `document` (also Cohere's and NVIDIA's words for them).")
    ] = None
    task: Annotated[str | None, Meta(description="Jina's name for the input type, such as `retrieval.query`.")] = None
    truncate: Annotated[
        bool | str | None,
        Meta(description="Cut long inputs (true, the default; START or END says where) or refuse them (false, NONE)."),
    ] = None
    truncation: Annotated[bool | None, Meta(description="Voyage's name for `truncate`.")] = None
    truncation_side: Annotated[str | None, Meta(description="Which end is cut off: `left` or `right`.")] = None
    truncation_direction: Annotated[str | None, Meta(description="TEI's name for `truncation_side`.")] = None
    truncate_prompt_tokens: Annotated[int | None, Meta(description="Cut at this many tokens.")] = None
    max_tokens: Annotated[int | None, Meta(description="Cohere's name for `truncate_prompt_tokens`.")] = None
    priority: Annotated[
        str | int | None,
        Meta(description="`interactive` or `bulk`; numbers: lower goes first, 0 (the default) is by size."),
    ] = None
    service_tier: Annotated[
        str | None, Meta(description="OpenAI's name for it: `priority`, `flex`, or `auto` and `default`: by size.")
    ] = None


class EmbedFields(TextFields, kw_only=True):
    """How vectors are made and written."""

    normalize: Annotated[bool | None, Meta(description="Unit length or not; absent is what the model says.")] = None
    normalized: Annotated[bool | None, Meta(description="Jina's name for `normalize`.")] = None
    dimensions: Annotated[int | None, Meta(description="Keep the first so many numbers; 0 keeps all.")] = None
    output_dimension: Annotated[int | None, Meta(description="Cohere's and Voyage's name for `dimensions`.")] = None
    long_text: Annotated[
        str | None,
        Meta(description="What becomes of a text that is too long: `cut` (the default), or `average` over its pieces."),
    ] = None
    encoding_format: Annotated[
        str | None, Meta(description="`float` (the default) or `base64`; or a name that `embedding_dtype` takes.")
    ] = None
    embedding_dtype: Annotated[
        str | None,
        Meta(description="`float32`, `int8`, `uint8`, `binary` or `ubinary`; absent is the server's setting."),
    ] = None
    output_dtype: Annotated[str | None, Meta(description="Voyage's name for `embedding_dtype`.")] = None
    embedding_type: Annotated[
        str | list[str] | None, Meta(description="Jina's name for `encoding_format`; of a list the first counts.")
    ] = None


class ScoreFields(TextFields, kw_only=True):
    """How scores are made."""

    raw_scores: Annotated[
        bool | None, Meta(description="Logits instead of probabilities (false, the default, gives 0..1).")
    ] = None
