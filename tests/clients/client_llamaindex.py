"""LlamaIndex: OpenAI-like, TEI and Cohere embeddings; TEI, Jina and Cohere rerankers."""

from __future__ import annotations

import asyncio

from checks import (
    EMBEDDER,
    KEY,
    KEYED_URL,
    PREFIX_URL,
    QUERY,
    RERANKER,
    TEXTS,
    URL,
    check,
    equal,
    ranked_as_expected,
    same,
    vectors,
)
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.cohere import CohereEmbedding
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference
from llama_index.postprocessor.cohere_rerank import CohereRerank
from llama_index.postprocessor.jinaai_rerank import JinaRerank
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference

MANY = [f"{TEXTS[index % 3]} {index}" for index in range(25)]


def nodes() -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=text), score=0.0) for text in TEXTS]


def reranked(postprocessor) -> None:
    found = postprocessor.postprocess_nodes(nodes(), query_str=QUERY)
    ranked_as_expected([TEXTS.index(item.node.get_content()) for item in found], [item.score for item in found])


openai_like = OpenAILikeEmbedding(model_name=EMBEDDER, api_base=URL + "/v1", api_key="none", embed_batch_size=10)
with check("E1 E4 E6", "OpenAILikeEmbedding: query, batch, asynchronous"):
    same(openai_like.get_text_embedding_batch(MANY), vectors(MANY))
    same(openai_like.get_query_embedding(TEXTS[0]), vectors(TEXTS[:1]))
    same(asyncio.run(openai_like.aget_text_embedding_batch(TEXTS)), vectors(TEXTS))
with check("E5", "OpenAILikeEmbedding with dimensions"):
    short = OpenAILikeEmbedding(model_name=EMBEDDER, api_base=URL + "/v1", api_key="none", dimensions=8)
    equal(len(short.get_text_embedding(TEXTS[0])), 8)
for url in (URL, PREFIX_URL):
    with check("T1", f"TextEmbeddingsInference: query, batch, asynchronous, {'' if url == URL else 'beside a prefix'}"):
        tei = TextEmbeddingsInference(model_name=EMBEDDER, base_url=url, timeout=60, embed_batch_size=10)
        same(tei.get_text_embedding_batch(MANY), vectors(MANY))
        equal(len(tei.get_query_embedding(TEXTS[0])), 32)
        same(asyncio.run(tei.aget_text_embedding_batch(TEXTS)), vectors(TEXTS))
with check("T1", "TextEmbeddingsInference with a token"):
    tei = TextEmbeddingsInference(model_name=EMBEDDER, base_url=KEYED_URL, auth_token=KEY)
    same(tei.get_text_embedding(TEXTS[0]), vectors(TEXTS[:1]))
with check("C1 C2", "CohereEmbedding"):
    import cohere as cohere_sdk

    found = CohereEmbedding(api_key="none", model_name="embed-english-v3.0", input_type="search_document")
    found._client = cohere_sdk.Client(api_key="none", base_url=URL)
    found._async_client = cohere_sdk.AsyncClient(api_key="none", base_url=URL)
    found.model_name = EMBEDDER
    equal(len(found.get_text_embedding_batch(TEXTS)), 3)
    same(found.get_text_embedding_batch(TEXTS), vectors(TEXTS))
for url in (URL, PREFIX_URL):
    with check("T3 R3", f"TEI reranker: one score for each text{'' if url == URL else ', beside a prefix'}"):
        reranked(TextEmbeddingInference(base_url=url, model_name=RERANKER, top_n=5, timeout=60))
with check("R1 R3", "JinaRerank with a base URL"):
    reranked(JinaRerank(base_url=URL + "/v1", model=RERANKER, api_key="none", top_n=3))
with check("R1 R3", "CohereRerank with a base URL"):
    reranked(CohereRerank(base_url=URL, model=RERANKER, api_key="none", top_n=3))
