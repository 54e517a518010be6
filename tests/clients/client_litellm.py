"""`litellm`: embedding() and rerank() through each provider that takes a base URL."""

from __future__ import annotations

import litellm
from checks import (
    BUSY_URL,
    DIM,
    EMBED_URL,
    EMBEDDER,
    PREFIX_URL,
    QUERY,
    RERANK_URL,
    RERANKER,
    TEXTS,
    URL,
    check,
    equal,
    raises,
    ranked_as_expected,
    same,
    vectors,
)

litellm.suppress_debug_info = True
KEY = {"api_key": "none", "num_retries": 0, "max_retries": 0}


def embed(provider: str, base: str, **options):
    """Vectors of TEXTS, whatever form they come in."""
    answer = litellm.embedding(model=f"{provider}/{EMBEDDER}", input=TEXTS, api_base=base, **(KEY | options))
    return [item["embedding"] for item in answer.data], answer


def rank(provider: str, base: str, model: str = RERANKER, **options):
    """Indices, scores and documents of the results."""
    answer = litellm.rerank(
        model=f"{provider}/{model}", query=QUERY, documents=TEXTS, api_base=base, **({"api_key": "none"} | options)
    )
    ranked_as_expected([item["index"] for item in answer.results], [item["relevance_score"] for item in answer.results])
    return [(item["index"], item.get("document")) for item in answer.results]


EMBEDDING = (
    ("openai", URL + "/v1", "E1 E4 E7"),
    ("openai", URL, "E1 E4 E7"),
    ("openai_like", URL + "/v1", "E1 E4"),
    ("hosted_vllm", URL + "/v1", "E1 E4"),
    ("infinity", URL, "E1 E4 E7"),
    ("infinity", URL + "/v1", "E1 E4 E7"),
    ("cohere", URL + "/v2/embed", "C1 C2"),
    ("cohere", URL + "/v1/embed", "C3"),
    ("jina_ai", URL + "/v1/embeddings", "E11"),
    ("voyage", URL + "/v1/embeddings", "E14"),
)
for provider, base, rows in EMBEDDING:
    with check(rows, f"embedding() as {provider} at {base.removeprefix(URL) or 'the root'}"):
        same(embed(provider, base)[0], vectors(TEXTS))
with check("T2", "embedding() as huggingface/TEI on the origin"):
    answer = litellm.embedding(
        model="huggingface/TEI", input=TEXTS, input_type="feature-extraction", api_base=EMBED_URL, **KEY
    )
    same([item["embedding"] for item in answer.data], vectors(TEXTS))
with check("T1", "embedding() as huggingface/TEI on /embed"):
    answer = litellm.embedding(
        model="huggingface/TEI", input=TEXTS, input_type="feature-extraction", api_base=URL + "/embed", **KEY
    )
    same([item["embedding"] for item in answer.data], vectors(TEXTS))
with check("E5", "infinity renames dimensions to output_dimension; openai keeps it"):
    for provider, base in (("infinity", URL), ("openai", URL + "/v1")):
        found, _ = embed(provider, base, dimensions=8, allowed_openai_params=["dimensions"])
        same(found, vectors(TEXTS, dimensions=8))
with check("E4", "infinity and openai with encoding_format float"):
    for provider, base in (("infinity", URL), ("openai", URL + "/v1")):
        same(embed(provider, base, encoding_format="float")[0], vectors(TEXTS))
with check("E1", "infinity without a key sends `Bearer None`, which a server without a key ignores"):
    same(embed("infinity", URL, api_key=None)[0], vectors(TEXTS))
with check("E7", "usage is counted"):
    _, answer = embed("infinity", URL)
    equal(len(answer.data[0]["embedding"]), DIM)
    assert answer.usage.prompt_tokens > 0

with check("R4 R1 R3", "rerank() as infinity at the root: string documents"):
    for _, document in rank("infinity", URL):
        assert document["text"] in TEXTS, document
with check("R4 R3", "rerank() as infinity at the root, documents not asked for, top_n over the list"):
    assert all(not document for _, document in rank("infinity", URL, return_documents=False, top_n=9))
with check("R4", "rerank() as infinity with a server started with --url-prefix /v1: native, so strings"):
    rank("infinity", PREFIX_URL + "/v1")
with check("R4", "rerank() as infinity at /v1 without documents"):
    rank("infinity", URL + "/v1", return_documents=False)
with check(
    "R4",
    "rerank() as infinity at /v1 with documents",
    contradiction="wants strings where Cohere's clients want objects; use the root as api_base",
):
    rank("infinity", URL + "/v1")
with check("R4", "rerank() as cohere on the bare origin (/v2/rerank) and with the full URL: object documents"):
    for base in (URL, URL + "/v2/rerank", URL + "/v1/rerank"):
        for index, document in rank("cohere", base, return_documents=True):
            equal(document["text"], TEXTS[index])
with check("R4", "rerank() as jina_ai: the origin's /v1/rerank"):
    for index, document in rank("jina_ai", URL, return_documents=True):
        equal(document["text"], TEXTS[index])
with check("R4", "rerank() as hosted_vllm without documents"):
    rank("hosted_vllm", URL, return_documents=False)
with check(
    "R4",
    "rerank() as hosted_vllm with documents",
    contradiction="calls the native path and wants objects where LiteLLM's infinity wants strings",
):
    rank("hosted_vllm", URL, return_documents=True)
for base in (URL, RERANK_URL):
    with check("T3", f"rerank() as huggingface, {'all models' if base == URL else 'the reranker alone'}"):
        rank("huggingface", base)
with check("R8", "rerank() as voyage"):
    rank("voyage", URL + "/v1/rerank", top_n=3)
with check("H1", "overload is a RateLimitError"):
    for provider, base in (("openai", BUSY_URL + "/v1"), ("infinity", BUSY_URL)):
        raises(litellm.RateLimitError, embed, provider, base)
