"""`voyageai` (Python): base64 of every dtype, rerank by `data`, errors by `detail`."""

from __future__ import annotations

import voyageai
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
    images,
    raises,
    ranked_as_expected,
    same,
    vectors,
)
from voyageai import error as errors


def client(base: str = URL + "/v1", key: str = "none", **options):
    return voyageai.Client(api_key=key, base_url=base, **options)


for base in (URL, URL + "/v1"):
    with check("E14 E4 E7", f"embed at {base.removeprefix(URL) or 'the root'}"):
        answer = client(base).embed(TEXTS, model=EMBEDDER)
        same(answer.embeddings, vectors(TEXTS))
        assert answer.total_tokens > 0
with check("E14", "embed with input_type, truncation and output_dimension"):
    answer = client().embed(TEXTS, model=EMBEDDER, input_type="query", truncation=True, output_dimension=8)
    equal([len(vector) for vector in answer.embeddings], [8] * 3)
with check("E14 E4", "embed with each output_dtype"):
    bits = [[number > 0 for number in vector] for vector in vectors(TEXTS)]
    packed = [[int("".join("01"[bit] for bit in row[at : at + 8]), 2) for at in range(0, DIM, 8)] for row in bits]
    for dtype in ("int8", "uint8", "binary", "ubinary"):
        found = client().embed(TEXTS, model=EMBEDDER, output_dtype=dtype).embeddings
        equal([len(row) for row in found], [DIM // 8 if "binary" in dtype else DIM] * 3)
        if dtype == "ubinary":
            equal([list(map(int, row)) for row in found], packed)
        if dtype == "int8":
            assert all(-128 <= number <= 127 for row in found for number in row)
            assert min(map(min, found)) < 0, found
with check("E14", "truncation=False refuses a text that is too long"):
    long = ["a dog sat on the mat " * 40]
    equal(len(client().embed(long, model=EMBEDDER).embeddings), 1)
    raises(errors.InvalidRequestError, client().embed, long, model=EMBEDDER, truncation=False)
for base in (URL, URL + "/v1"):
    with check("R8 R1 R3", f"rerank at {base.removeprefix(URL) or 'the root'}, with top_k and without"):
        answer = client(base).rerank(QUERY, TEXTS, model=RERANKER)
        ranked_as_expected([item.index for item in answer.results], [item.relevance_score for item in answer.results])
        equal([item.document for item in answer.results], [TEXTS[item.index] for item in answer.results])
        equal(len(client(base).rerank(QUERY, TEXTS, model=RERANKER, top_k=2).results), 2)
        assert answer.total_tokens > 0
with check("E14", "contextualized embeddings"):
    answer = client().contextualized_embed(inputs=[TEXTS[:2], TEXTS[2:]], model=EMBEDDER)
    equal([len(result.embeddings) for result in answer.results], [2, 1])
    equal(len(answer.results[0].embeddings[0]), DIM)
with check("E14", "multimodal embeddings of texts; an image on a text model is an InvalidRequestError"):
    answer = client().multimodal_embed(inputs=[[text] for text in TEXTS], model=EMBEDDER)
    same(answer.embeddings, vectors(TEXTS))
    part = {"content": [{"type": "image_base64", "image_base64": PIXEL}]}
    error = raises(errors.InvalidRequestError, client().multimodal_embed, inputs=[part], model=EMBEDDER)
    assert "image" in str(error), error
with check("E14", "multimodal embeddings of an image beside a text, and what they cost"):
    parts = [{"type": "image_base64", "image_base64": PIXEL}, {"type": "text", "text": TEXTS[0]}]
    answer = client().multimodal_embed(inputs=[{"content": [part]} for part in parts], model=VISION)
    same(answer.embeddings[0], images([PIXEL])[0])
    assert answer.image_pixels > 0
    assert answer.text_tokens > 0
with check("H1", "overload is a RateLimitError, through its `detail`, and is retried"):
    raises(errors.RateLimitError, client(BUSY_URL + "/v1", max_retries=0).embed, ["x"], model=EMBEDDER)
    raises(errors.RateLimitError, client(BUSY_URL + "/v1", max_retries=1).embed, ["x"], model=EMBEDDER)
with check("E14", "with a key configured: the right one works, a wrong one is an AuthenticationError"):
    client(KEYED_URL + "/v1", KEY).embed(TEXTS, model=EMBEDDER)
    raises(errors.AuthenticationError, client(KEYED_URL + "/v1", "no").embed, TEXTS, model=EMBEDDER)
