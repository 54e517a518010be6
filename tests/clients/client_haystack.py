"""Haystack: OpenAI and Hugging Face embedders, the sparse one, TEI's ranker, Jina and Cohere."""

from __future__ import annotations

import os

os.environ |= {"OPENAI_API_KEY": "none", "JINA_API_KEY": "none", "COHERE_API_KEY": "none", "HF_TOKEN": "none"}

from checks import (
    BUSY_URL,
    EMBED_URL,
    EMBEDDER,
    PREFIX_URL,
    QUERY,
    RERANKER,
    SPARSE_URL,
    TEXTS,
    URL,
    check,
    equal,
    post,
    raises,
    ranked_as_expected,
    same,
    vectors,
)
from haystack import Document
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack_integrations.components.embedders.cohere import CohereDocumentEmbedder, CohereTextEmbedder
from haystack_integrations.components.embedders.huggingface_api import (
    HuggingFaceAPIDocumentEmbedder,
    HuggingFaceAPITextEmbedder,
    HuggingFaceTEISparseTextEmbedder,
)
from haystack_integrations.components.embedders.jina import JinaDocumentEmbedder, JinaTextEmbedder
from haystack_integrations.components.rankers.cohere import CohereRanker
from haystack_integrations.components.rankers.huggingface_api import HuggingFaceTEIRanker
from haystack_integrations.components.rankers.huggingface_api.ranker import TruncationDirection
from haystack_integrations.components.rankers.jina import JinaRanker


def documents(texts=TEXTS) -> list[Document]:
    return [Document(content=text) for text in texts]


def embedded(answer) -> list[list[float]]:
    return [document.embedding for document in answer["documents"]]


def ranked(answer, count: int = 3) -> None:
    found = answer["documents"]
    equal(len(found), count)
    ranked_as_expected([TEXTS.index(document.content) for document in found], [document.score for document in found])


MANY = [f"{TEXTS[index % 3]} {index}" for index in range(70)]
with check("E1 E4 E6", "OpenAI embedders: text, 70 documents in batches, dimensions"):
    options = {"model": EMBEDDER, "api_base_url": URL + "/v1"}
    same(OpenAITextEmbedder(**options).run(TEXTS[0])["embedding"], vectors(TEXTS[:1]))
    same(embedded(OpenAIDocumentEmbedder(**options, progress_bar=False).run(documents(MANY))), vectors(MANY))
    equal(len(OpenAITextEmbedder(**options, dimensions=8).run(TEXTS[0])["embedding"]), 8)
for url in (EMBED_URL, URL + "/embed", PREFIX_URL):
    place = {EMBED_URL: "the origin", PREFIX_URL: "the origin beside a prefix"}.get(url, "/embed")
    with check(
        "T1" if url.endswith("/embed") else "T2", f"Hugging Face API embedders at {place}: not normalised by default"
    ):
        options = {"api_type": "text_embeddings_inference", "api_params": {"url": url}}
        found = HuggingFaceAPITextEmbedder(**options).run(TEXTS[0])["embedding"]
        length = sum(number**2 for number in found) ** 0.5
        assert abs(length - 1) > 1e-3, "normalize=false gave a unit vector"
        same([number / length for number in found], vectors(TEXTS[:1]))
        unit = HuggingFaceAPIDocumentEmbedder(**options, normalize=True, progress_bar=False)
        same(embedded(unit.run(documents(MANY))), vectors(MANY))
for url in (URL, SPARSE_URL):
    with check("T6", f"the sparse embedder, {'all models' if url == URL else 'the sparse model alone'}"):
        found = HuggingFaceTEISparseTextEmbedder(api_base_url=url).run(TEXTS[0])["sparse_embedding"]
        plain = post(url + "/embed_sparse", {"inputs": TEXTS[0]})[0]
        equal(found.indices, [item["index"] for item in plain])
        same(found.values, [item["value"] for item in plain])
        assert len(plain) > 1, plain
with check("T6", "the sparse embedder on a dense model is refused by name"):
    error = raises(Exception, HuggingFaceTEISparseTextEmbedder(api_base_url=EMBED_URL).run, TEXTS[0])
    assert "sparse" in str(error), error
for url in (URL, URL + "/some/path", PREFIX_URL + "/v1"):
    with check("T3", f"TEI ranker with {url.split('/', 3)[3] if url.count('/') > 2 else 'the origin'!r}"):
        ranked(HuggingFaceTEIRanker(url=url, top_k=3).run(query=QUERY, documents=documents()))
with check("T3 R9", "TEI ranker with truncation and raw scores"):
    for side in TruncationDirection:
        ranker = HuggingFaceTEIRanker(url=URL, top_k=2)
        ranked(ranker.run(query=QUERY, documents=documents(), truncation_direction=side), 2)
    found = HuggingFaceTEIRanker(url=URL, raw_scores=True).run(query=QUERY, documents=documents())["documents"]
    assert any(not 0 <= document.score <= 1 for document in found), found
with check("H1", "TEI ranker says what an overloaded server said"):
    raises(Exception, HuggingFaceTEIRanker(url=BUSY_URL, max_retries=0).run, query=QUERY, documents=documents())
with check("E11", "Jina embedders with the whole URL, and with task, dimensions and late_chunking"):
    options = {"model": EMBEDDER, "base_url": URL + "/v1/embeddings"}
    same(JinaTextEmbedder(**options).run(TEXTS[0])["embedding"], vectors(TEXTS[:1]))
    same(embedded(JinaDocumentEmbedder(**options, progress_bar=False).run(documents())), vectors(TEXTS))
    more = {"task": "retrieval.query", "dimensions": 8, "late_chunking": False}
    equal(len(JinaTextEmbedder(**options, **more).run(TEXTS[0])["embedding"]), 8)
with check("R1 R5", "Jina ranker with the whole URL"):
    ranker = JinaRanker(model=RERANKER, base_url=URL + "/v1/rerank", top_k=3)
    answer = ranker.run(query=QUERY, documents=documents())
    ranked(answer)
with check("C1 C2", "Cohere embedders"):
    options = {"model": EMBEDDER, "api_base_url": URL}
    same(CohereTextEmbedder(**options).run(TEXTS[0])["embedding"], vectors(TEXTS[:1]))
    same(embedded(CohereDocumentEmbedder(**options, progress_bar=False).run(documents())), vectors(TEXTS))
with check("R1 R2", "Cohere ranker"):
    ranker = CohereRanker(model=RERANKER, api_base_url=URL, top_k=3)
    ranked(ranker.run(query=QUERY, documents=documents()))
