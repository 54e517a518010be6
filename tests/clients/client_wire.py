"""Requests as applications send them that are no packages: Dify, Open WebUI, RAGFlow, Elasticsearch, Vespa, MTEB and more.

Stdlib only: each body is written as the application's source writes it, and read as it reads it.
"""

from __future__ import annotations

import http.client
import json
from urllib.parse import urlsplit

from checks import (
    BUSY_URL,
    CLASSIFIER,
    CLASSIFY_URL,
    DIM,
    EMBED_URL,
    EMBEDDER,
    KEY,
    KEYED_URL,
    LABELS,
    PIXEL,
    PREFIX_URL,
    QUERY,
    RERANK_URL,
    RERANKER,
    SPARSE_URL,
    TEXTS,
    URL,
    VISION,
    check,
    equal,
    images,
    ranked_as_expected,
    same,
    unpack,
    vectors,
)


def call(url: str, body: object = None, method: str = "POST", **headers: str):
    """Status, headers and decoded body, of one request without following a redirect."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=60)
    sent = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, parts.path or "/", None if body is None else json.dumps(body), sent)
    answer = connection.getresponse()
    raw = answer.read()
    connection.close()
    kind = answer.getheader("content-type", "")
    return (
        answer.status,
        {k.lower(): v for k, v in answer.getheaders()},
        json.loads(raw) if "json" in kind and raw else raw,
    )


def ok(url: str, body: object, **headers: str):
    status, _, answer = call(url, body, **headers)
    assert status == 200, (status, answer)
    return answer


def rerank(path: str = "/v1/rerank", **body: object):
    return ok(URL + path, {"model": RERANKER, "query": QUERY, "documents": TEXTS} | body)


def ranked(results, score: str = "relevance_score") -> None:
    ranked_as_expected([item["index"] for item in results], [item[score] for item in results])


FLOATS = {"model": EMBEDDER, "input": TEXTS}
with check("E1 E7", "Dify: validates with ping, reads model and total_tokens; an empty Authorization"):
    answer = ok(URL + "/v1/embeddings", {"input": "ping", "model": EMBEDDER}, Authorization="")
    equal(answer["model"], EMBEDDER)
    assert isinstance(answer["usage"]["total_tokens"], int)
with check("E1", "odd credentials are ignored where no key is configured"):
    for value in ("Bearer None", "Bearer undefined", "Bearer EMPTY", "Bearer", "Bearer Bearer tok"):
        ok(URL + "/v1/embeddings", FLOATS, Authorization=value)
with check("E1", "with a key, api-key, x-api-key and Bearer are accepted, and a 401 says so"):
    for header in ({"api_key": KEY}, {"x_api_key": KEY}, {"Authorization": f"Bearer {KEY}"}):
        ok(KEYED_URL + "/v1/embeddings", FLOATS, **header)
    status, _, answer = call(KEYED_URL + "/v1/embeddings", FLOATS)
    equal((status, isinstance(answer["error"]["message"], str)), (401, True))
with check("E4 E5", "Vespa: base64 and dimensions of the native size on every call"):
    answer = ok(URL + "/v1/embeddings", FLOATS | {"encoding_format": "base64", "dimensions": DIM})
    same([unpack(item["embedding"]) for item in answer["data"]], vectors(TEXTS))
with check("E4 E5 E8", "explicit nulls and unknown fields"):
    nulls = dict.fromkeys(["dimensions", "encoding_format", "user", "truncate", "modality", "input_type", "task"])
    extra = {"return_len": True, "encoding_type": "float", "add_special_tokens": True, "priority": 0, "drop_params": 1}
    same([item["embedding"] for item in ok(URL + "/v1/embeddings", FLOATS | nulls | extra)["data"]], vectors(TEXTS))
with check("E2", "Meilisearch: one flat list of ids"):
    same(ok(URL + "/v1/embeddings", {"model": EMBEDDER, "input": [15339]})["data"][0]["embedding"], vectors(["hello"]))
with check("E10", "Jina and Dify: texts as objects; an image object on a text model is a 400"):
    answer = ok(URL + "/v1/embeddings", FLOATS | {"input": [{"text": text} for text in TEXTS]})
    same([item["embedding"] for item in answer["data"]], vectors(TEXTS))
    for image in (
        {"image": PIXEL},
        {"image": PIXEL.split(",")[1]},
        {"url": "http://127.0.0.1:9/x.png"},
        {"bytes": "AA=="},
    ):
        status, _, answer = call(URL + "/v1/embeddings", FLOATS | {"input": [image]})
        equal((status, isinstance(answer["detail"], str)), (400, True))
with check("E10 E12", "Jina: images as URI and as bare base64 beside a text; Dify: an image as a conversation"):
    mixed = [{"text": TEXTS[0]}, {"image": PIXEL}, {"image": PIXEL.split(",")[1]}]
    found = [item["embedding"] for item in ok(URL + "/v1/embeddings", {"model": VISION, "input": mixed})["data"]]
    same(found[1:], images([PIXEL, PIXEL]))
    content = [{"type": "image_url", "image_url": {"url": PIXEL}}]
    body = {"model": VISION, "messages": [{"role": "user", "content": content}]}
    same(ok(URL + "/v1/embeddings", body)["data"][0]["embedding"], images([PIXEL])[0])
with check("E11", "Jina's options, one by one and together"):
    options = {"task": "text-matching", "late_chunking": False, "truncate": True, "embedding_type": "float"}
    for body in (*({name: value} for name, value in options.items()), options):
        same([item["embedding"] for item in ok(URL + "/v1/embeddings", FLOATS | body)["data"]], vectors(TEXTS))
    answer = ok(URL + "/v1/embeddings", FLOATS | {"embedding_type": "base64"})
    same(unpack(answer["data"][0]["embedding"]), vectors(TEXTS)[0])
    raw = ok(URL + "/v1/embeddings", FLOATS | {"normalized": False})["data"][0]["embedding"]
    assert abs(sum(number**2 for number in raw) - 1) > 1e-3, "normalized=false gave a unit vector"
with check("E12", "MTEB and Dify: messages, one conversation and several"):
    talk = [[{"role": "user", "content": [{"type": "text", "text": text}]}] for text in TEXTS]
    body = {"model": EMBEDDER, "encoding_format": "float", "continue_final_message": False}
    answer = ok(URL + "/v1/embeddings", body | {"messages": talk})
    same([item["embedding"] for item in answer["data"]], vectors(TEXTS))
    same(ok(URL + "/v1/embeddings", body | {"messages": talk[0]})["data"][0]["embedding"], vectors(TEXTS[:1]))
    plain = [{"role": "user", "content": TEXTS[1]}]
    same(ok(URL + "/v1/embeddings", body | {"messages": plain})["data"][0]["embedding"], vectors(TEXTS[1:2]))
with check("E13", "MTEB: truncate_prompt_tokens"):
    equal(ok(URL + "/v1/embeddings", FLOATS | {"truncate_prompt_tokens": 3})["usage"]["prompt_tokens"], 9)
with check("E1 I1", "Typesense: the name in GET /v1/models; a percent-encoded name"):
    assert EMBEDDER in [model["id"] for model in call(URL + "/v1/models", method="GET")[2]["data"]]
    equal(call(URL + "/v1/models/tiny%2Fembedder", method="GET")[2]["id"], EMBEDDER)
with check("E1 R1 I2", "the same routes under a configured prefix, and still at the root"):
    for root in (PREFIX_URL, PREFIX_URL + "/v1"):
        ok(root + "/embeddings", FLOATS)
        ok(root + "/rerank", {"query": QUERY, "documents": TEXTS, "model": RERANKER})
        ok(root + "/classify", {"input": TEXTS, "model": CLASSIFIER})

with check("R6 R4", "Elasticsearch: no further key in a result, no null document"):
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
        equal({key for item in rerank(path)["results"] for key in item}, {"index", "relevance_score"})
        found = {key for item in rerank(path, return_documents=True)["results"] for key in item}
        equal(found, {"index", "relevance_score", "document"})
    rows = ok(URL + "/rerank", {"texts": TEXTS, "query": QUERY, "return_text": True})
    equal({key for item in rows for key in item}, {"index", "score", "text"})
with check("R4", "the same documents: strings at /rerank, objects at /v1/rerank and /v2/rerank"):
    for item in rerank("/rerank", return_documents=True)["results"]:
        equal(item["document"], TEXTS[item["index"]])
    for path in ("/v1/rerank", "/v2/rerank"):
        for item in rerank(path, return_documents=True)["results"]:
            equal(item["document"], {"text": TEXTS[item["index"]]})
with check("R2 R3 R5", "Dify and Open WebUI: top_n null, over the list, absent"):
    for body in ({"top_n": None}, {"top_n": 50}, {}):
        answer = rerank("/rerank", **body)
        equal(len(answer["results"]), 3)
        ranked(answer["results"])
        equal((answer["object"], answer["model"]), ("rerank", RERANKER))
        equal(answer["meta"]["billed_units"]["search_units"], 1)
with check("R7", "Dify and Jina m0: documents as content parts and as objects; an image part is a 400"):
    ranked(rerank(documents=[{"text": text} for text in TEXTS])["results"])
    ranked(rerank(documents=[{"content": [{"type": "text", "text": text}]} for text in TEXTS])["results"])
    image = {"content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}
    equal(call(URL + "/v1/rerank", {"model": RERANKER, "query": QUERY, "documents": [image]})[0], 400)
with check("R8", "Continue and Dify Voyage: data equals results; top_k"):
    for path in ("/rerank", "/v1/rerank"):
        answer = rerank(path, top_k=2)
        equal((len(answer["data"]), answer["data"]), (2, answer["results"]))
with check("R9", "scores lie in 0..1; raw scores are their logits"):
    from math import exp

    raw = rerank(raw_scores=True)["results"]
    same(
        [1 / (1 + exp(-item["relevance_score"])) for item in raw],
        [item["relevance_score"] for item in rerank()["results"]],
    )
with check("R10", "RAGFlow Xinference: booleans as strings"):
    answer = rerank("/v1/rerank", return_documents="true", return_len="true")
    assert "document" in answer["results"][0]
    assert "document" not in rerank("/v1/rerank", return_documents="false")["results"][0]

with check(
    "T1", "TEI embed: an array of arrays for one string too; every option; as Vespa, Milvus, Continue and chat-ui"
):
    equal([len(row) for row in ok(EMBED_URL + "/embed", {"inputs": TEXTS[0]})], [DIM])
    options = {"normalize": True, "truncate": True, "truncation_direction": "Right", "prompt_name": None}
    same(ok(EMBED_URL + "/embed", {"inputs": TEXTS, "dimensions": None} | options), vectors(TEXTS))
    same(ok(EMBED_URL + "/embed", {"inputs": TEXTS, "dimensions": 8}), vectors(TEXTS, dimensions=8))
with check("T1", "TEI errors: error is a string, error_type is named, over-long input without truncation is refused"):
    status, _, answer = call(EMBED_URL + "/embed", {"inputs": "a dog sat on the mat " * 40, "truncate": False})
    equal(status, 422)
    assert isinstance(answer["error"], str), answer
    equal(answer["error_type"], "Validation")
with check("T3", "TEI rerank with texts: Dify, RAGFlow, Continue, pymilvus; directions in any case"):
    body = {"query": QUERY, "texts": TEXTS, "raw_scores": False, "truncate": True}
    for direction in ("Right", "right", "LEFT"):
        ranked(ok(RERANK_URL + "/rerank", body | {"truncation_direction": direction, "top_n": 3}), "score")
    equal([set(item) for item in ok(URL + "/rerank", body | {"return_text": False})], [{"index", "score"}] * 3)
    for root in (PREFIX_URL, PREFIX_URL + "/v1"):
        ranked(ok(root + "/rerank", body), "score")
with check("T4", "info: one key says what the model is for; limits; of each model on its own port"):
    for url, kind in ((EMBED_URL, "embedding"), (RERANK_URL, "reranker"), (CLASSIFY_URL, "classifier")):
        answer = call(url + "/info", method="GET")[2]
        equal(list(answer["model_type"]), [kind])
        for name in ("max_input_length", "max_client_batch_size", "max_batch_tokens"):
            assert answer[name] > 0, answer
        assert isinstance(answer["model_id"], str)
with check("T4", "info of a server of several models is that of the first"):
    equal(list(call(URL + "/info", method="GET")[2]["model_type"]), ["embedding"])
with check("T2", "POST / embeds, classifies or ranks, as the model is"):
    same(ok(EMBED_URL, {"inputs": TEXTS}), vectors(TEXTS))
    equal({item["label"] for item in ok(CLASSIFY_URL, {"inputs": TEXTS[0]})}, LABELS)
    ranked(ok(RERANK_URL, {"query": QUERY, "texts": TEXTS}), "score")
with check("T5", "predict: a text flat, two strings one pair, several a list of lists"):
    one = ok(CLASSIFY_URL + "/predict", {"inputs": "a dog"})
    equal({item["label"] for item in one}, LABELS)
    pair = ok(CLASSIFY_URL + "/predict", {"inputs": ["a dog", "the cat"]})
    assert isinstance(pair[0], dict), pair
    several = ok(CLASSIFY_URL + "/predict", {"inputs": [["a dog"], ["a dog", "the cat"]]})
    same([item["score"] for item in several[0]], [item["score"] for item in one])
    same([item["score"] for item in several[1]], [item["score"] for item in pair])
with check("T7", "similarity, on its route and on POST /"):
    body = {"inputs": {"source_sentence": TEXTS[0], "sentences": TEXTS}}
    for url in (URL + "/similarity", EMBED_URL):
        same(ok(url, body)[0], 1.0)
with check("T8", "tokenize and decode"):
    (tokens,) = ok(EMBED_URL + "/tokenize", {"inputs": "the cat"})
    assert {"id", "text", "special", "start", "stop"} <= set(tokens[0]), tokens[0]
    assert "the cat" in ok(EMBED_URL + "/decode", {"ids": [[token["id"] for token in tokens]]})[0]
with check("T8", "embed_all: a vector a token"):
    (matrix,) = ok(EMBED_URL + "/embed_all", {"inputs": "the cat"})
    (tokens,) = ok(EMBED_URL + "/tokenize", {"inputs": "the cat"})
    equal([len(row) for row in matrix], [DIM] * len(tokens))
with check(
    "T6", "embed_sparse: index and value of words, one list a text; where no model gives them, a refusal that says so"
):
    for url in (URL + "/embed_sparse", SPARSE_URL + "/embed_sparse", SPARSE_URL):
        rows = ok(url, {"inputs": TEXTS})
        equal(len(rows), 3)
        assert all(isinstance(item["index"], int) and item["value"] > 0 for row in rows for item in row), rows
        equal(ok(url, {"inputs": TEXTS[0]}), rows[:1])
    status, _, answer = call(EMBED_URL + "/embed_sparse", {"inputs": TEXTS})
    assert 400 <= status < 500, status
    assert "sparse" in answer["error"], answer
with check("T9", "timing headers"):
    headers = call(EMBED_URL + "/embed", {"inputs": TEXTS})[1]
    assert {"x-compute-time", "x-total-time", "x-inference-time", "x-compute-tokens"} <= set(headers), headers
with check("I2", "classify at /classify and /v1/classify"):
    for path in ("/classify", "/v1/classify"):
        answer = ok(URL + path, {"model": CLASSIFIER, "input": TEXTS})
        equal((answer["object"], {item["label"] for item in answer["data"][0]}), ("classify", LABELS))
with check("H1", "overload on every family of routes: 429, integer Retry-After, the family's own body"):
    bodies = {
        "/v1/embeddings": {"input": "x"},
        "/v2/embed": {"texts": ["x"], "model": "m", "input_type": "search_query"},
        "/embed": {"inputs": "x"},
    }
    for path, body in bodies.items():
        status, headers, answer = call(BUSY_URL + path, body)
        equal(status, 429)
        assert int(headers["retry-after"]) >= 1
        assert isinstance(answer["error"], str) if path == "/embed" else answer["message"] and answer["detail"], answer
with check("H2", "x-request-id on answers and errors; a sent one comes back"):
    assert call(URL + "/v1/embeddings", {"input": 1})[1]["x-request-id"]
    assert call(URL + "/nowhere", {})[1]["x-request-id"]
    equal(call(URL + "/v1/embeddings", FLOATS, x_request_id="abc-123")[1]["x-request-id"], "abc-123")
with check("H3", "a trailing slash: answered, or redirected with 307"):
    status, headers, _ = call(URL + "/v1/embeddings/", FLOATS)
    assert status in (200, 307, 308), status
    assert status == 200 or urlsplit(headers["location"]).path == "/v1/embeddings", headers
with check("H4", "CORS preflight where it is enabled"):
    asked = {"Origin": "http://browser.test", "Access_Control_Request_Method": "POST"}
    asked["Access_Control_Request_Headers"] = "authorization,content-type"
    status, headers, _ = call(PREFIX_URL + "/v1/embeddings", None, "OPTIONS", **asked)
    assert status in (200, 204), status
    assert headers["access-control-allow-origin"] in ("*", "http://browser.test"), headers
    assert "POST" in headers["access-control-allow-methods"], headers
