"""Cases about the form of embedding requests and answers."""

from __future__ import annotations

import asyncio
import base64
import json

import httpx
import numpy as np
import openai
import pytest

from cases.reference import states_mean
from cases.served import Served, cosines, message_of, numbers_of, vectors_of
from infinity_emb.config.choices import TokenIds
from infinity_emb.server import token_ids

DIM = 32


@pytest.fixture(scope="module")
def own_ids(engines) -> Served:
    """A server that takes token ids as the served model's own."""
    return Served(engines["embed"], token_ids=TokenIds.MODEL)


def test_b001_a_bare_string_is_one_input(embedder):
    one = embedder.embed("green tea")
    assert one.shape == (1, DIM)
    np.testing.assert_allclose(one, embedder.embed(["green tea"]), atol=1e-6)


@pytest.mark.parametrize("lists", [[[2, 20, 30, 3]], [[2, 20, 3], [2, 30, 40, 3]], [[20, 30]]])
def test_b002_token_ids_are_fed_exactly_as_sent(own_ids, folders, lists):
    answer = own_ids.post("/v1/embeddings", input=lists)
    expected = [states_mean(folders["embed"], ids) for ids in lists]
    np.testing.assert_allclose(vectors_of(answer), expected, atol=1e-5)
    assert answer.json()["usage"]["prompt_tokens"] == sum(map(len, lists))


def test_b002_one_list_of_token_ids_is_one_input(own_ids):
    ids = [2, 20, 30, 3]
    np.testing.assert_allclose(own_ids.embed(ids), own_ids.embed([ids]), atol=1e-6)


def test_b002_ids_of_a_text_with_its_special_tokens_give_the_vector_of_the_text(own_ids, engines):
    (tokens,) = engines["embed"].tokenize(["green tea"])
    ids = [token.id for token in tokens]
    np.testing.assert_allclose(own_ids.embed(ids), own_ids.embed("green tea"), atol=1e-6)
    assert cosines(own_ids.embed(ids[1:-1]), own_ids.embed("green tea"))[0] < 0.9999


def test_b002_by_default_ids_are_openais_and_stand_for_their_text(embedder, monkeypatch):
    monkeypatch.setattr(token_ids, "load_table", lambda: {70: b"green", 71: b" te", 72: b"a"})
    answer = embedder.post("/v1/embeddings", input=[[70, 71, 72], [70]])
    np.testing.assert_allclose(vectors_of(answer), embedder.embed(["green tea", "green"]), atol=1e-6)


def test_b003_lists_of_token_ids_come_back_as_base64(own_ids):
    answer = own_ids.post("/v1/embeddings", input=[[20, 30]], encoding_format="base64")
    (item,) = answer.json()["data"]
    assert len(base64.b64decode(item["embedding"], validate=True)) == 4 * DIM
    np.testing.assert_allclose(vectors_of(answer), own_ids.embed([[20, 30]]), atol=1e-6)


@pytest.mark.parametrize("wrong", [999_999_999, -1, 10**30])
@pytest.mark.parametrize("shape", [lambda ids: ids, lambda ids: [[2, 3], ids]])
def test_b004_an_id_outside_the_vocabulary_is_named_with_the_bounds(own_ids, folders, wrong, shape):
    size = json.loads((folders["embed"] / "config.json").read_text())["vocab_size"]
    message = message_of(own_ids.post("/v1/embeddings", input=shape([2, wrong])))
    assert str(wrong) in message
    assert str(size - 1) in message
    assert own_ids.embed("still here").shape == (1, DIM)


def test_b004_the_last_id_of_the_vocabulary_is_allowed_and_the_next_is_not(own_ids, folders):
    size = json.loads((folders["embed"] / "config.json").read_text())["vocab_size"]
    assert own_ids.embed([0, size - 1]).shape == (1, DIM)
    message_of(own_ids.post("/v1/embeddings", input=[size]))


@pytest.mark.parametrize("value", [[], [[]], [[2, 3], []]])
def test_b004_an_empty_list_of_ids_is_refused(own_ids, value):
    message_of(own_ids.post("/v1/embeddings", input=value))
    assert own_ids.embed("still here").shape == (1, DIM)


def test_b005_base64_holds_the_numbers_of_the_float_answer(embedder):
    answer = embedder.post("/v1/embeddings", input=["a", "b"], encoding_format="base64")
    for item in answer.json()["data"]:
        assert isinstance(item["embedding"], str)
        assert len(base64.b64decode(item["embedding"], validate=True)) == 4 * DIM
    np.testing.assert_allclose(vectors_of(answer), embedder.embed(["a", "b"]), atol=1e-6)


@pytest.mark.parametrize("fields", [{}, {"encoding_format": None}, {"encoding_format": "float"}])
def test_b005_float_null_and_nothing_give_lists(embedder, fields):
    data = embedder.post("/v1/embeddings", input=["a"], **fields).json()["data"]
    assert isinstance(data[0]["embedding"], list)


@pytest.mark.parametrize("fields", [{}, {"encoding_format": "float"}])
def test_b005_the_openai_package_reads_lists_of_numbers(embedder, fields):
    async def main(_):
        http_client = httpx.AsyncClient(transport=httpx.ASGITransport(embedder.app))
        client = openai.AsyncOpenAI(base_url="http://testserver/v1", api_key="none", http_client=http_client)
        return await client.embeddings.create(model="acme/embed", input=["a", "b"], **fields)

    answer = embedder.run(main)
    assert all(type(item.embedding) is list for item in answer.data)
    np.testing.assert_allclose([item.embedding for item in answer.data], embedder.embed(["a", "b"]), atol=1e-6)


def test_b007_an_unknown_encoding_is_refused_with_the_allowed_ones(embedder):
    message = message_of(embedder.post("/v1/embeddings", input="x", encoding_format="md5"))
    assert "md5" in message
    assert "float" in message
    assert "base64" in message


@pytest.mark.parametrize(
    ("prefix", "paths"), [("", ["/v1/embeddings", "/embeddings"]), ("/v1", ["/v1/embeddings", "/embeddings"])]
)
def test_b008_the_envelope_is_openais_with_and_without_a_prefix(engines, prefix, paths):
    server = Served(engines["embed"], url_prefix=prefix)
    for path in paths:
        answer = server.post(path, model="acme/embed", input=["a", "b"])
        assert answer.status_code == 200
        body = answer.json()
        assert body["object"] == "list"
        assert body["model"] == "acme/embed"
        assert [(item["object"], item["index"]) for item in body["data"]] == [("embedding", 0), ("embedding", 1)]
        assert body["usage"]["prompt_tokens"] == body["usage"]["total_tokens"] == 6


@pytest.mark.parametrize("names", [["embed"], ["embed", "rerank"]])
def test_b009_models_is_an_array_whatever_their_number(engines, names):
    body = Served(*(engines[name] for name in names)).get("/models").json()
    assert body["object"] == "list"
    assert [entry["id"] for entry in body["data"]] == [f"acme/{name}" for name in names]
    for entry in body["data"]:
        assert entry["object"] == "model"
        assert type(entry["created"]) is int
        assert isinstance(entry["owned_by"], str)


@pytest.mark.parametrize("root", ["/models", "/v1/models"])
def test_b010_a_name_with_a_slash_is_found_plain_and_escaped(everything, root):
    for name in ("acme/embed", "acme%2Fembed", "acme%2fembed"):
        answer = everything.get(f"{root}/{name}")
        assert answer.status_code == 200
        assert answer.json()["id"] == "acme/embed"


def test_b010_an_unknown_model_is_told_from_an_unknown_route(everything):
    model, route = everything.get("/models/acme/nope"), everything.get("/nothing/here")
    assert "acme/nope" in message_of(model, statuses=frozenset({404}))
    message_of(route, statuses=frozenset({404}))
    assert model.json()["error"]["code"] != route.json()["error"]["code"]


def test_b012_a_vector_is_one_flat_list_of_numbers(embedder):
    (item,) = embedder.post("/v1/embeddings", input="hello world").json()["data"]
    assert len(item["embedding"]) == DIM
    assert all(type(number) is float for number in item["embedding"])


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("embed", "/v1/embeddings", {"input": []}),
        ("rerank", "/rerank", {"query": "q", "documents": []}),
        ("classify", "/classify", {"input": []}),
    ],
)
def test_b013_an_empty_list_is_refused_and_the_next_request_served(everything, name, path, body):
    model = f"acme/{name}"
    message_of(everything.post(path, model=model, **body))
    assert everything.post(path, model=model, input=["x"], query="q", documents=["x"]).status_code == 200


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("embed", lambda engine: engine.embed(sentences=[])),
        ("rerank", lambda engine: engine.rerank(query="q", docs=[])),
        ("classify", lambda engine: engine.classify(sentences=[])),
    ],
)
def test_b014_an_empty_list_in_process_gives_an_empty_answer(engines, name, call):
    assert asyncio.run(call(engines[name])) == ([], 0)


def test_b015_empty_and_blank_strings_are_inputs_like_any_other(embedder):
    vectors = embedder.embed(["alpha", "", "   ", "beta"])
    assert vectors.shape == (4, DIM)
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(vectors[0], embedder.embed("alpha")[0], atol=1e-5)
    np.testing.assert_allclose(vectors[3], embedder.embed("beta")[0], atol=1e-5)


def test_b015_the_vector_of_nothing_is_that_of_the_special_tokens(embedder, own_ids, engines):
    (tokens,) = engines["embed"].tokenize([""])
    assert [token.text for token in tokens] == ["[CLS]", "[SEP]"]
    np.testing.assert_allclose(embedder.embed(""), own_ids.embed([token.id for token in tokens]), atol=1e-6)


ODD_BODY = rb'["ok text", "bad \ud83d tail", "nul \u0000 byte"]'


def test_b018_half_a_surrogate_pair_is_the_replacement_character_and_nul_is_kept(embedder):
    vectors = vectors_of(embedder.post_raw("/v1/embeddings", b'{"input": ' + ODD_BODY + b"}"))
    expected = embedder.embed(["ok text", "bad \ufffd tail", "nul \x00 byte"])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    np.testing.assert_allclose(vectors[:1], embedder.embed("ok text"), atol=1e-5)


def test_b018_whole_pairs_and_written_backslashes_are_left_alone(embedder):
    body = rb'{"input": ["half \ud83d", "whole \ud83d\ude00", "written \\ud83d"]}'
    vectors = vectors_of(embedder.post_raw("/v1/embeddings", body))
    np.testing.assert_allclose(vectors, embedder.embed(["half \ufffd", "whole 😀", "written \\ud83d"]), atol=1e-5)


def test_b018_reranked_documents_come_back_as_valid_utf8(reranker):
    body = rb'{"query": "q \udc00", "return_documents": true, "documents": ' + ODD_BODY + b"}"
    answer = reranker.post_raw("/rerank", body)
    assert answer.status_code == 200
    results = json.loads(answer.content.decode("utf-8", errors="strict"))["results"]
    assert {result["document"] for result in results} == {"ok text", "bad \ufffd tail", "nul \x00 byte"}


@pytest.mark.parametrize("text", ["tail \ud83d", "\udc00 head"])
def test_b018_half_a_character_in_process_is_an_error_that_names_the_item(engines, text):
    with pytest.raises(ValueError, match="1"):
        asyncio.run(engines["embed"].embed(sentences=["ok", text]))


def test_b019_a_request_larger_than_a_batch_is_split_inside(folders, start):
    server = Served(start(folders["embed"], batch_size=8))
    texts = [f"text number {number}" for number in range(17)]
    vectors = server.embed(texts)
    assert vectors.shape == (17, DIM)
    np.testing.assert_allclose(vectors, np.vstack([server.embed(text) for text in texts]), atol=1e-5)


def test_b019_2048_inputs_are_served_and_2049_refused_with_the_limit(embedder):
    answer = embedder.post("/v1/embeddings", input=["x"] * 2048, encoding_format="base64")
    assert vectors_of(answer).shape == (2048, DIM)
    assert "2048" in message_of(embedder.post("/v1/embeddings", input=["x"] * 2049))


def test_b020_a_body_of_three_megabytes_is_served(embedder):
    texts = [f"{number} " + "padding " * 250 for number in range(1500)]
    body = json.dumps({"input": texts, "encoding_format": "base64"}).encode()
    assert len(body) > 3_000_000
    answer = embedder.post_raw("/v1/embeddings", body)
    assert len(answer.json()["data"]) == 1500


def test_b020_a_byte_limit_answers_413_and_states_itself(engines):
    server = Served(engines["embed"], max_body_bytes=1024 * 1024)
    message = message_of(server.post("/v1/embeddings", input="x" * 2_000_000), statuses=frozenset({413}))
    assert "1,048,576" in message or "1048576" in message or "1 MiB" in message
    assert server.embed("x").shape == (1, DIM)


@pytest.mark.parametrize("modality", ["image", "audio"])
def test_b089_media_to_a_text_model_names_model_modality_and_offer(embedder, modality):
    message = message_of(embedder.post("/v1/embeddings", input=["http://127.0.0.1/x"], modality=modality))
    for word in ("acme/embed", modality, "embed text"):
        assert word in message
    assert embedder.embed("x").shape == (1, DIM)


def test_b089_an_unknown_modality_is_refused_with_the_known_ones(embedder):
    message = message_of(embedder.post("/v1/embeddings", input=["x"], modality="video"))
    for word in ("video", "text", "image", "audio"):
        assert word in message


def test_b090_a_data_uri_sent_as_text_is_ordinary_text(embedder):
    uri = "data:image/png;base64,AAAA"
    np.testing.assert_allclose(embedder.embed([uri], modality="text"), embedder.embed([uri]), atol=1e-6)
    assert numbers_of(embedder.post("/v1/embeddings", input=uri).json()["data"][0]["embedding"])
