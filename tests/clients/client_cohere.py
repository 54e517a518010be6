"""`cohere` (Python): Client (v1) and ClientV2, with the bare origin as base URL."""

from __future__ import annotations

import asyncio

import cohere
from checks import (
    BUSY_URL,
    DIM,
    EMBEDDER,
    KEY,
    KEYED_URL,
    PIXEL,
    QUERY,
    RERANKER,
    TEXTS,
    URL,
    VISION,
    check,
    equal,
    falling,
    images,
    raises,
    ranked_as_expected,
    same,
    unpack,
    vectors,
)

v1 = cohere.Client(api_key="none", base_url=URL)
v2 = cohere.ClientV2(api_key="none", base_url=URL)
TYPED = {"model": EMBEDDER, "input_type": "search_document"}
TYPES = ["float", "int8", "uint8", "binary", "ubinary", "base64"]


def ranked(answer) -> None:
    ranked_as_expected([item.index for item in answer.results], [item.relevance_score for item in answer.results])


with check("C3", "v1 embed, minimal, without a model"):
    answer = v1.embed(texts=TEXTS)
    equal(answer.response_type, "embeddings_floats")
    same(answer.embeddings, vectors(TEXTS))
with check("C3", "v1 embed with embedding_types"):
    answer = v1.embed(texts=TEXTS, embedding_types=["float"], **TYPED)
    equal(answer.response_type, "embeddings_by_type")
    same(answer.embeddings.float_, vectors(TEXTS))
with check("C3 E6", "v1 embed of 100 texts: two parallel calls, joined in order"):
    texts = [f"{TEXTS[index % 3]} {index}" for index in range(100)]
    same(v1.embed(texts=texts, **TYPED).embeddings, vectors(texts))
with check("C1 C2", "v2 embed of 100 texts, with every answer field"):
    texts = [f"{TEXTS[index % 3]} {index}" for index in range(100)]
    answer = v2.embed(texts=texts, embedding_types=["float"], **TYPED)
    same(answer.embeddings.float_, vectors(texts))
    equal((answer.texts, bool(answer.id)), (texts, True))
    assert answer.meta.billed_units.input_tokens > 0
with check("C1 C2", "v2 embed without embedding_types gives floats"):
    same(v2.embed(texts=TEXTS, **TYPED).embeddings.float_, vectors(TEXTS))
with check("C4", "v2 embed in six types at once"):
    found = v2.embed(texts=TEXTS, embedding_types=TYPES, **TYPED).embeddings
    same(found.float_, vectors(TEXTS))
    same([unpack(text) for text in found.base64], vectors(TEXTS))
    equal([len(row) for row in found.int8 + found.uint8], [DIM] * 6)
    equal([len(row) for row in found.binary + found.ubinary], [DIM // 8] * 6)
    bits = [number > 0 for number in vectors(TEXTS)[0]]
    packed = [int("".join("01"[bit] for bit in bits[at : at + 8]), 2) for at in range(0, DIM, 8)]
    equal(found.ubinary[0], packed)
    equal(found.binary[0], [byte - 128 for byte in packed])
with check("C1 E5", "v2 embed with output_dimension, truncate, max_tokens, priority and null options"):
    more = {"output_dimension": 8, "truncate": "END", "max_tokens": 64, "priority": 1}
    answer = v2.embed(texts=TEXTS, **TYPED, request_options={"additional_body_parameters": more})
    equal([len(row) for row in answer.embeddings.float_], [8] * 3)
    v2.embed(texts=TEXTS, **TYPED, truncate=None, output_dimension=None)
with check("C1", "v2 embed of text inputs"):
    inputs = [{"content": [{"type": "text", "text": text}]} for text in TEXTS]
    same(v2.embed(inputs=inputs, **TYPED).embeddings.float_, vectors(TEXTS))
with check("C1", "v2 embed of images on a text model is a clear BadRequestError"):
    error = raises(cohere.BadRequestError, v2.embed, images=[PIXEL], model=EMBEDDER, input_type="image")
    assert "image" in error.body["message"], error.body
with check("C1", "v2 embed of images, and of texts and images as inputs"):
    typed = {"model": VISION, "input_type": "image", "embedding_types": ["float"]}
    same(v2.embed(images=[PIXEL], **typed).embeddings.float_, images([PIXEL]))
    parts = [{"type": "text", "text": TEXTS[0]}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    found = v2.embed(inputs=[{"content": [part]} for part in parts], **typed).embeddings.float_
    same(found[1], images([PIXEL])[0])
    equal(len(found[0]), len(found[1]))
with check("C1", "asynchronous clients"):

    async def both():
        one = await cohere.AsyncClientV2(api_key="none", base_url=URL).embed(texts=TEXTS, **TYPED)
        two = await cohere.AsyncClient(api_key="none", base_url=URL).rerank(
            model=RERANKER, query=QUERY, documents=TEXTS
        )
        return one, two

    embedded, ordered = asyncio.run(both())
    same(embedded.embeddings.float_, vectors(TEXTS))
    ranked(ordered)
with check("R1 R3 R5", "v2 rerank: sorted, with id and billed search units"):
    answer = v2.rerank(model=RERANKER, query=QUERY, documents=TEXTS)
    equal(len(answer.results), 3)
    ranked(answer)
    assert answer.id
    equal(answer.meta.billed_units.search_units, 1)
with check("R2", "top_n: fewer, more than there are, absent"):
    for top_n, expected in ((1, 1), (9, 3), (None, 3)):
        equal(len(v2.rerank(model=RERANKER, query=QUERY, documents=TEXTS, top_n=top_n).results), expected)
with check("R4", "v1 rerank with return_documents: an object with text; without: None"):
    answer = v1.rerank(model=RERANKER, query=QUERY, documents=TEXTS, return_documents=True)
    ranked(answer)
    equal([item.document.text for item in answer.results], [TEXTS[item.index] for item in answer.results])
    answer = v1.rerank(model=RERANKER, query=QUERY, documents=TEXTS)
    equal([item.document for item in answer.results], [None] * 3)
with check("R7", "v1 rerank of dict documents, by text and by rank_fields"):
    answer = v1.rerank(model=RERANKER, query=QUERY, documents=[{"text": text} for text in TEXTS])
    ranked(answer)
    documents = [{"title": text, "id": str(index)} for index, text in enumerate(TEXTS)]
    answer = v1.rerank(model=RERANKER, query=QUERY, documents=documents, rank_fields=["title"], return_documents=True)
    ranked(answer)
    falling([item.relevance_score for item in answer.results])
with check("T8", "tokenize and detokenize"):
    tokens = v1.tokenize(text="the cat", model=EMBEDDER, offline=False)
    assert len(tokens.tokens) == len(tokens.token_strings) > 0, tokens
    assert "cat" in v1.detokenize(tokens=tokens.tokens, model=EMBEDDER, offline=False).text
with check("I1", "models.list reads the same answer"):
    assert {EMBEDDER, RERANKER} <= {model.name for model in v1.models.list().models}
with check("H1", "overload is a TooManyRequestsError with a message"):
    options = {"max_retries": 0}
    busy = cohere.ClientV2(api_key="none", base_url=BUSY_URL)
    error = raises(cohere.TooManyRequestsError, busy.embed, texts=["x"], **TYPED, request_options=options)
    assert error.body["message"], error.body
with check("C1", "with a key configured: the right one works, a wrong one is an UnauthorizedError"):
    cohere.ClientV2(api_key=KEY, base_url=KEYED_URL).embed(texts=TEXTS, **TYPED)
    raises(cohere.UnauthorizedError, cohere.ClientV2(api_key="no", base_url=KEYED_URL).embed, texts=TEXTS, **TYPED)
