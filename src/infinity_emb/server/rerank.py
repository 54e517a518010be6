"""`/rerank`: TEI's body (`texts`) and everybody else's (`documents`) share the path and are told apart by it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from infinity_emb.config.choices import RerankDocument
from infinity_emb.server.decode import decode_body, decoder_for
from infinity_emb.server.embedding import usage_headers, usage_of
from infinity_emb.server.errors import SchemaError
from infinity_emb.server.fields import Documents, PositiveInt, ScoreFields
from infinity_emb.server.identity import new_id
from infinity_emb.server.inputs import content_text
from infinity_emb.server.response import json_response
from infinity_emb.server.scoring import rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.scoring import Ranked
    from infinity_emb.server.serving import Serving
    from infinity_emb.types import Usage


class RerankBody(ScoreFields, kw_only=True):
    """Body of `/rerank`, `/v1/rerank` and `/v2/rerank`: a query, and `documents` or TEI's `texts`."""

    query: str
    documents: Annotated[
        Documents | None, Meta(description="Strings, or objects with a `text` (or the fields named in `rank_fields`).")
    ] = None
    texts: Annotated[list[str] | None, Meta(description="TEI's documents; the answer is then TEI's bare list.")] = None
    input: Annotated[Documents | None, Meta(description="Mixedbread's name for `documents`.")] = None
    top_n: Annotated[PositiveInt | None, Meta(description="Return only the best so many.")] = None
    top_k: Annotated[PositiveInt | None, Meta(description="Voyage's name for `top_n`.")] = None
    return_documents: bool | None = None
    return_input: bool | None = None
    return_text: bool | None = None
    rank_fields: Annotated[list[str] | None, Meta(description="Fields of document objects to read, in order.")] = None


_DECODER = decoder_for(RerankBody)


async def rerank(request: Request, serving: Serving) -> Response:
    """Sort documents by their relevance to a query."""
    body = decode_body(request, _DECODER)
    if body.texts is not None and body.documents is None:
        request.dialect = "tei"
        return await _tei_rerank(request, serving, body)
    documents = body.documents if body.documents is not None else body.input
    if documents is None:
        raise SchemaError("documents: this field is required.", loc=("documents",), kind="missing")
    texts = [_text_of(document, body.rank_fields, index) for index, document in enumerate(documents)]
    ranked = await rank(request, serving, body, body.query, texts, top_n=body.top_n or body.top_k)
    shown = _shown(request, serving, body, documents, texts)
    mixedbread = body.documents is None
    results = [
        _result(score, index, shown, mixedbread=mixedbread)
        for score, index in zip(ranked.scores, ranked.order, strict=True)
    ]
    return json_response(_envelope(ranked, results), headers=usage_headers(ranked.usage))


async def _tei_rerank(request: Request, serving: Serving, body: RerankBody) -> Response:
    texts = body.texts or []
    if not texts:
        raise SchemaError("texts: must hold at least one item.", loc=("texts",), kind="too_short")
    ranked = await rank(request, serving, body, body.query, texts, top_n=body.top_n)
    rows: list[dict[str, Any]] = [
        {"index": index, "score": score} for score, index in zip(ranked.scores, ranked.order, strict=True)
    ]
    if body.return_text or body.return_documents:
        for row in rows:
            row["text"] = texts[row["index"]]
    return json_response(rows, headers=usage_headers(ranked.usage))


def _text_of(document: str | dict[str, Any], fields: list[str] | None, index: int) -> str:
    """The text of a document: itself, its `text`, its text contents, or its `rank_fields` as `name: value` lines."""
    if isinstance(document, str):
        return document
    if fields:
        chosen = [(name, document[name]) for name in fields if document.get(name) is not None]
        if len(chosen) == 1:
            return str(chosen[0][1])
        if chosen:
            return "\n".join(f"{name}: {value}" for name, value in chosen)
    text = document.get("text")
    if isinstance(text, str):
        return text
    if document.get("content") is not None:
        return content_text(document["content"], "documents", index)
    raise SchemaError(f"documents.{index}: an object needs a 'text'.", loc=("documents", index))


def _shown(
    request: Request, serving: Serving, body: RerankBody, documents: Sequence[Any], texts: Sequence[str]
) -> Sequence[Any] | None:
    """What `document` holds for each document, or None if it was not asked for (the key is then left out)."""
    if not (body.return_documents or body.return_input):
        return None
    if body.documents is None:
        return texts
    form = serving.settings.rerank_document
    if form is RerankDocument.STRING or (form is RerankDocument.AUTO and request.native):
        return texts
    return [
        document if isinstance(document, dict) and "text" in document else {"text": text}
        for document, text in zip(documents, texts, strict=True)
    ]


def _result(score: float, index: int, shown: Sequence[Any] | None, *, mixedbread: bool) -> dict[str, Any]:
    """One result; strict parsers refuse any further key."""
    result: dict[str, Any] = {"relevance_score": score, "index": index}
    if mixedbread:
        result["score"] = score
    if shown is not None:
        result["input" if mixedbread else "document"] = shown[index]
    return result


def _envelope(ranked: Ranked, results: list[dict[str, Any]]) -> dict[str, Any]:
    """All that the families of clients read; `data` is Voyage's name for `results`."""
    return {
        "object": "rerank",
        "results": results,
        "data": results,
        "model": ranked.model,
        "usage": usage_of(ranked.usage),
        "meta": meta(ranked.usage, search_units=1),
        "id": f"infinity-{new_id()}",
        "created": int(time.time()),
    }


def meta(usage: Usage, **billed: int) -> dict[str, Any]:
    """Cohere's `meta`."""
    return {
        "api_version": {"version": "2"},
        "billed_units": billed,
        "tokens": {"input_tokens": usage.prompt_tokens},
    }
