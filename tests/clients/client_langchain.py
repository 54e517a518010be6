"""`langchain-openai`: token ids by default, plain strings with the check off."""

from __future__ import annotations

import asyncio

from checks import DIM, EMBEDDER, TEXTS, URL, check, equal, same, vectors
from langchain_openai import AzureOpenAIEmbeddings, OpenAIEmbeddings

KNOWN = {"base_url": URL + "/v1", "api_key": "none", "model": EMBEDDER}

with check("E2 E4", "OpenAIEmbeddings as it comes sends cl100k ids; the vectors are those of the texts"):
    embeddings = OpenAIEmbeddings(**KNOWN)
    same(embeddings.embed_documents(TEXTS), vectors(TEXTS))
    same(embeddings.embed_query(TEXTS[0]), vectors(TEXTS[:1]))
    same(asyncio.run(embeddings.aembed_documents(TEXTS)), vectors(TEXTS))
with check("E2 E3", "with an empty string among the documents"):
    found = OpenAIEmbeddings(**KNOWN).embed_documents(["", TEXTS[0], "  "])
    equal([len(vector) for vector in found], [DIM] * 3)
    same(found[1], vectors(TEXTS[:1]))
with check("E1 E3", "check_embedding_ctx_length=False sends strings; an empty one too"):
    plain = OpenAIEmbeddings(**KNOWN, check_embedding_ctx_length=False)
    same(plain.embed_documents([*TEXTS, ""]), vectors([*TEXTS, ""]))
    same(plain.embed_query(TEXTS[0]), vectors(TEXTS[:1]))
with check("E2", "both ways give the same vectors"):
    same(OpenAIEmbeddings(**KNOWN).embed_documents(TEXTS), plain.embed_documents(TEXTS))
with check("E2 E6", "1200 documents in batches, in order"):
    texts = [f"{TEXTS[index % 3]} {index % 5}" for index in range(1200)]
    found = OpenAIEmbeddings(**KNOWN).embed_documents(texts)
    equal(len(found), 1200)
    same(found[1199], vectors(texts[-1:]))
with check("E5", "dimensions pass through"):
    equal(len(OpenAIEmbeddings(**KNOWN, dimensions=8).embed_query(TEXTS[0])), 8)
with check("E15 E2", "AzureOpenAIEmbeddings"):
    azure = AzureOpenAIEmbeddings(
        azure_endpoint=URL, azure_deployment=EMBEDDER, api_key="none", api_version="2024-10-21", model=EMBEDDER
    )
    same(azure.embed_documents(TEXTS), vectors(TEXTS))
