"""The one way from inputs to vectors, used by every dialect (hot path)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from infinity_emb.server.media import embed_media
from infinity_emb.server.options import call_of, embed_options, output_form
from infinity_emb.server.vectors import finished
from infinity_emb.types import Modality, Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.server.fields import EmbedFields
    from infinity_emb.server.inputs import Inputs
    from infinity_emb.server.options import OutputForm
    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Headers
    from infinity_emb.server.serving import Serving
    from infinity_emb.types import EmbedResult, Usage


class Embedded(NamedTuple):
    """Vectors ready to be written.

    Attributes:
        engine: Who made them.
        result: As float32, before quantisation.
        vectors: In the wanted number format.
        form: How to write them.
    """

    engine: AsyncEmbeddingEngine
    result: EmbedResult
    vectors: NDArray[Any]
    form: OutputForm

    @property
    def model(self) -> str:
        """Served name."""
        return self.engine.card.served_name

    @property
    def usage(self) -> Usage:
        """Tokens and truncations."""
        return self.result.usage

    @property
    def headers(self) -> Headers:
        """What every answer with vectors carries."""
        headers = fingerprint_headers(self.engine)
        return usage_headers(self.usage) + headers if self.usage.truncated else headers


async def embed(request: Request, serving: Serving, fields: EmbedFields, inputs: Inputs) -> Embedded:
    """Embed the inputs of a request and count what it cost.

    Raises:
        InfinityError: See the table of errors.
    """
    engine = serving.models.find(fields.model, Task.EMBED)
    form = output_form(fields, engine)
    options = embed_options(fields, engine)
    if inputs.modality is Modality.TEXT:
        result = await engine.embed_result(inputs.items, options, call_of(request, fields, engine, "embeddings"))
    else:
        result = await embed_media(engine, inputs, options, call_of(request, fields, engine, "embeddings"))
    vectors = finished(result, form.dtype, engine)
    usage = result.usage
    serving.metrics.record_work(
        engine.card.served_name,
        "embed",
        items=len(inputs.items),
        tokens=usage.prompt_tokens,
        truncated=len(usage.truncated),
    )
    return Embedded(engine, result, vectors, form)


def usage_of(usage: Usage) -> dict[str, Any]:
    """OpenAI's `usage`; cut items are named, because truncation is never silent."""
    answer: dict[str, Any] = {"prompt_tokens": usage.prompt_tokens, "total_tokens": usage.prompt_tokens}
    if usage.truncated:
        answer["truncated_items"] = list(usage.truncated)
    if usage.averaged:
        answer["averaged_items"] = list(usage.averaged)
    return answer


def usage_headers(usage: Usage) -> Headers:
    """`x-truncated` with the number of cut items, if any was."""
    return [(b"x-truncated", str(len(usage.truncated)).encode())] if usage.truncated else []


def fingerprint_headers(engine: AsyncEmbeddingEngine) -> Headers:
    """`x-model-fingerprint`: vectors under another value must not share an index with these."""
    fingerprint = engine.card.extra.get("fingerprint")
    return [(b"x-model-fingerprint", str(fingerprint).encode())] if fingerprint else []
