"""`langchain-community`: InfinityEmbeddings and InfinityRerank."""

from __future__ import annotations

import asyncio

from checks import (
    EMBEDDER,
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
from infinity_client import Client
from langchain_community.document_compressors.infinity_rerank import InfinityRerank
from langchain_community.embeddings import InfinityEmbeddings
from langchain_core.documents import Document

for base in (URL, URL + "/v1"):
    embeddings = InfinityEmbeddings(model=EMBEDDER, infinity_api_url=base)
    place = base.removeprefix(URL) or "the root"
    with check("E1 E6", f"InfinityEmbeddings at {place}"):
        same(embeddings.embed_documents(TEXTS), vectors(TEXTS))
        same(embeddings.embed_query(TEXTS[0]), vectors(TEXTS[:1]))
    with check("E1 E6", f"InfinityEmbeddings, asynchronous, at {place}"):
        same(asyncio.run(embeddings.aembed_documents(TEXTS)), vectors(TEXTS))
with check("E1 E6", "1000 documents over 32 connections come back in order"):
    texts = [f"{TEXTS[index % 3]} {index % 11}" for index in range(1000)]
    found = InfinityEmbeddings(model=EMBEDDER, infinity_api_url=URL).embed_documents(texts)
    same(found[-3:], vectors(texts[-3:]))
with check("I1", "an unknown model among several is an exception with the server's text"):
    wrong = InfinityEmbeddings(model="nobody/knows", infinity_api_url=URL)
    error = raises(Exception, wrong.embed_query, "x")
    assert EMBEDDER in str(error), error
for base, model in ((URL, RERANKER), (RERANK_URL, "any name")):
    with check("R1 R3 R5", f"InfinityRerank over Documents, {'all models' if base == URL else 'the reranker alone'}"):
        rerank = InfinityRerank(client=Client(base_url=base), model=model, top_n=2)
        documents = rerank.compress_documents([Document(page_content=text) for text in TEXTS], QUERY)
        equal(len(documents), 2)
        order = [TEXTS.index(document.page_content) for document in documents]
        ranked_as_expected(order, [document.metadata["relevance_score"] for document in documents])
