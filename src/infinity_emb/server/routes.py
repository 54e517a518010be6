"""Every path that is served, in one table; native routes are served under the prefix as well."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.server import (
    catalog,
    cohere,
    debug,
    native,
    openai,
    pages,
    probes,
    rerank,
    tei,
    tei_predict,
    tei_tokens,
    voyage,
)
from infinity_emb.server.routing import Route

if TYPE_CHECKING:
    from infinity_emb.server.settings import HttpSettings

_EMBEDDING = openai.EmbeddingBody

_MEDIA = (
    ("/embeddings_image", native.embeddings_image, "Vectors of images (deprecated)"),
    ("/embeddings_audio", native.embeddings_audio, "Vectors of sounds (deprecated)"),
)
_NATIVE = (
    Route("POST", "/embeddings", openai.embeddings, "Vectors of texts, images or sounds", _EMBEDDING, "Embeddings"),
    Route("POST", "/rerank", rerank.rerank, "Sort documents by relevance to a query", rerank.RerankBody, "Reranked"),
    Route("POST", "/classify", native.classify, "Scores of every label", native.ClassifyBody, "Classified"),
    *(Route("POST", path, handler, summary, _EMBEDDING, "Embeddings") for path, handler, summary in _MEDIA),
    Route("GET", "/models", catalog.models, "Every served model", answer="ModelList", access="models"),
    Route("GET", "/models/{model}", catalog.model, "One served model", answer="Model", access="models"),
)

_AZURE_PATH = "/openai/deployments/{model}/embeddings"
_POOLING = tuple(
    Route("POST", path, openai.pooling, "vLLM's vectors or matrices", _EMBEDDING, "Object", "openai")
    for path in ("/pooling", "/v1/pooling")
)
_OPENAI = (
    *_POOLING,
    Route("POST", _AZURE_PATH, openai.azure_embeddings, "Azure's path", _EMBEDDING, "Embeddings", "openai"),
)

_COHERE = tuple(
    Route("POST", path, handler, summary, body, answer, "cohere")
    for path, handler, summary, body, answer in (
        ("/v1/embed", cohere.embed_v1, "Cohere v1 embed", cohere.CohereEmbedBody, "CohereEmbeddings"),
        ("/v2/embed", cohere.embed_v2, "Cohere v2 embed", cohere.CohereEmbedBody, "CohereEmbeddings"),
        ("/v2/rerank", rerank.rerank, "Cohere v2 rerank", rerank.RerankBody, "Reranked"),
        ("/v1/tokenize", cohere.tokenize, "Cohere tokenize", cohere.TokenizeBody, "Object"),
        ("/v1/detokenize", cohere.detokenize, "Cohere detokenize", cohere.DetokenizeBody, "Object"),
    )
)

_VOYAGE = tuple(
    Route("POST", root + path, handler, summary, body, "Object", "voyage")
    for root in ("", "/v1")
    for path, handler, summary, body in (
        ("/contextualizedembeddings", voyage.contextualized, "Voyage contextualised chunks", voyage.ContextualBody),
        ("/multimodalembeddings", voyage.multimodal, "Voyage multimodal embeddings", voyage.MultimodalBody),
    )
)

_TEI_POSTS = tuple(
    Route("POST", path, handler, summary, body, answer, "tei", dialect="tei")
    for path, handler, summary, body, answer in (
        ("/", tei_predict.door, "What the model is for, as TEI answers it", tei_predict.DoorBody, "Any"),
        ("/invocations", tei_predict.door, "The same (SageMaker)", tei_predict.DoorBody, "Any"),
        ("/vertex", tei_predict.vertex, "The same, several at once (Vertex)", tei_predict.VertexBody, "Object"),
        ("/embed", tei.embed, "Bare vectors", tei.TeiEmbedBody, "Any"),
        ("/predict", tei_predict.predict, "Labels and scores", tei_predict.PredictBody, "Any"),
        ("/similarity", tei.similarity, "Cosine of one sentence to others", tei.SimilarityBody, "Any"),
        ("/tokenize", tei_tokens.tokenize, "Tokens of texts", tei_tokens.TeiTokenizeBody, "Any"),
        ("/decode", tei_tokens.decode, "Texts of tokens", tei_tokens.TeiDecodeBody, "Any"),
        ("/embed_sparse", tei.embed_sparse, "Weights of words (sparse encoders)", tei.TeiEmbedBody, "Any"),
        ("/embed_all", tei.embed_all, "A vector a token", tei.TeiEmbedBody, "Any"),
    )
)
_TEI = (
    *_TEI_POSTS,
    Route("GET", "/info", tei_tokens.info, "Facts about the first model", None, "Object", "tei", "tei", access="info"),
)

_HEALTH = tuple(
    Route("GET", path, handler, summary, None, answer, "probes", access="always")
    for path, handler, summary, answer in (
        ("/health", probes.health, "Can every model answer?", "Object"),
        ("/ping", probes.health, "The same", "Object"),
        ("/livez", probes.livez, "Does the process answer?", "Object"),
        ("/readyz", probes.readyz, "Are requests welcome?", "Object"),
        ("/startupz", probes.startupz, "Progress of start-up", "Object"),
        ("/v2/health/live", probes.livez, "Does the process answer? (KServe)", "Object"),
        ("/v2/health/ready", probes.readyz, "Are requests welcome? (KServe)", "Object"),
        ("/", probes.home, "To the documentation", "Redirect"),
    )
)
_PROBES = (
    *_HEALTH,
    Route("GET", "/debug", debug.debug, "What waits and runs (operators)", None, "Object", "probes", access="operator"),
    Route("GET", "/metrics", probes.metrics, "Counters for Prometheus", None, "Text", "probes", access="metrics"),
)

_PAGES = (
    Route("GET", "/docs", pages.docs, "This documentation", None, "Html", "docs", access="docs"),
    Route("GET", "/docs/{file}", pages.asset, "Its style and script", None, "Text", "docs", access="docs"),
    Route("GET", "/openapi.json", pages.openapi_json, "The OpenAPI document", None, "Object", "docs", access="docs"),
)


def all_routes(settings: HttpSettings) -> tuple[Route, ...]:
    """The routes of a server; of two with the same method and path the first one counts.

    Native routes come first, at the root and under the prefix: with `--url-prefix /v1`, `/v1/rerank` is native.
    """
    native_roots = dict.fromkeys(["", settings.url_prefix])
    routes = [replace(route, path=root + route.path, native=True) for root in native_roots for route in _NATIVE]
    routes += [replace(route, path="/v1" + route.path, tag="openai") for route in _NATIVE if "_" not in route.path]
    routes += [*_OPENAI, *_COHERE, *_VOYAGE, *_TEI, *_PROBES, *_PAGES]
    if settings.url_prefix:
        prefixed = (*_COHERE, *_VOYAGE, *_TEI, *_PAGES)
        routes += [replace(route, path=settings.url_prefix + route.path) for route in prefixed if route.path != "/"]
    return tuple({(route.method, route.path): route for route in reversed(routes)}.values())[::-1]
