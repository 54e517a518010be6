from __future__ import annotations

import base64
import hashlib

import numpy as np
import pytest

from api.fake_engine import DIM, LABELS, FakeEngine, fake_vector
from infinity_emb.config.choices import TokenIds
from infinity_emb.server import token_ids
from infinity_emb.types import Task


def unit(text):
    return fake_vector(text) / np.linalg.norm(fake_vector(text))


# Cohere


def test_cohere_v1_gives_a_plain_list_without_types(served):
    body = served.post("/v1/embed", {"texts": ["a", "b"]}).json()
    np.testing.assert_allclose(body["embeddings"], [unit("a"), unit("b")], atol=1e-6)
    assert body["response_type"] == "embeddings_floats"
    assert body["meta"]["billed_units"]["input_tokens"] == 6


def test_cohere_gives_several_types_at_once(served):
    types = ["float", "int8", "uint8", "binary", "ubinary", "base64"]
    body = {"texts": ["a"], "model": "m", "input_type": "search_document", "embedding_types": types}
    found = served.post("/v2/embed", body).json()["embeddings"]
    assert list(found) == types
    np.testing.assert_allclose(np.frombuffer(base64.b64decode(found["base64"][0]), "<f4"), unit("a"), atol=1e-6)
    assert found["binary"][0][0] == found["ubinary"][0][0] - 128
    assert found["uint8"][0] == [value + 128 for value in found["int8"][0]]


def test_cohere_refuses_unknown_types_by_name(served):
    answer = served.post("/v2/embed", {"texts": ["a"], "embedding_types": ["float", "int4"]})
    assert answer.status_code == 422
    assert "int4" in answer.json()["message"]


def test_cohere_content_inputs_are_read(served):
    body = {"inputs": [{"content": [{"type": "text", "text": "a"}]}, {"content": [{"type": "text", "text": "b"}]}]}
    found = served.post("/v2/embed", body).json()["embeddings"]["float"]
    np.testing.assert_allclose(found, [unit("a"), unit("b")], atol=1e-6)


@pytest.mark.parametrize("body", [{}, {"texts": []}, {"texts": None}])
def test_cohere_without_inputs_is_422(served, body):
    assert served.post("/v2/embed", body).status_code == 422


def test_cohere_tokenize_and_detokenize(served):
    tokens = served.post("/v1/tokenize", {"text": "green tea"}).json()
    assert tokens["token_strings"] == ["green", "tea"]
    assert served.post("/v1/detokenize", {"tokens": [15, 16]}).json()["text"] == "15 16"


# Infinity's classify, and Cohere's on the same path


@pytest.mark.parametrize("value", ["a", ["a"]])
@pytest.mark.parametrize("path", ["/classify", "/v1/classify"])
def test_classify_gives_every_label_best_first(served, path, value):
    body = served.post(path, {"input": value}).json()
    scores = [row["score"] for row in body["data"][0]]
    assert body["object"] == "classify"
    assert {row["label"] for row in body["data"][0]} == set(LABELS)
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) == pytest.approx(1, abs=1e-6)


def test_classify_raw_scores_are_passed_on(served):
    served.post("/classify", {"input": ["a"], "raw_scores": True})
    assert served.engine.calls[-1][2].raw_scores is True


def test_inputs_get_coheres_classifications(served):
    (entry,) = served.post("/v1/classify", {"inputs": ["a"]}).json()["classifications"]
    assert entry["prediction"] in LABELS
    assert set(entry["labels"]) == set(LABELS)


# Voyage


def test_contextualised_chunks_come_grouped_by_document(served):
    data = served.post("/v1/contextualizedembeddings", {"inputs": [["a", "b"], ["c"]]}).json()["data"]
    assert [len(group["data"]) for group in data] == [2, 1]
    np.testing.assert_allclose(data[1]["data"][0]["embedding"], unit("c"), atol=1e-6)


def test_multimodal_inputs_of_text_are_embedded(served):
    body = {"inputs": [{"content": [{"type": "text", "text": "a"}]}], "model": "m"}
    answer = served.post("/v1/multimodalembeddings", body).json()
    np.testing.assert_allclose(answer["data"][0]["embedding"], unit("a"), atol=1e-6)
    assert answer["usage"]["text_tokens"] == 3
    assert answer["usage"]["image_pixels"] == answer["usage"]["video_pixels"] == 0


# Token ids

_SHA256_OF_THE_PUBLIC_TABLE = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"


@pytest.fixture
def _table(monkeypatch):
    monkeypatch.setattr(
        token_ids, "load_table", lambda: {1: b"gr", 2: b"een", 3: "é".encode()[:1], 4: "é".encode()[1:]}
    )


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize(("value", "texts"), [([1, 2], ["green"]), ([[1, 2], [3, 4]], ["green", "é"])])
def test_token_ids_are_taken_as_openais_by_default(served, value, texts):
    data = served.post("/v1/embeddings", {"input": value}).json()["data"]
    np.testing.assert_allclose([item["embedding"] for item in data], [unit(text) for text in texts], atol=1e-6)


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("number", [9, -1, 99999999999999999999999])
def test_ids_outside_openais_vocabulary_are_400_and_named(served, number):
    answer = served.post("/v1/embeddings", {"input": [number]})
    assert answer.status_code == 400
    assert str(number) in answer.json()["error"]["message"]


def test_the_table_is_openais_own_byte_for_byte():
    table = token_ids.load_table()
    lines = (base64.b64encode(table[number]) + b" %d\n" % number for number in range(100_256))
    assert hashlib.sha256(b"".join(lines)).hexdigest() == _SHA256_OF_THE_PUBLIC_TABLE
    assert len(table) == 100_256 + 5


def test_a_plain_install_reads_ids_that_clients_send(served):
    hello_world = [15339, 1917]
    data = served.post("/v1/embeddings", {"input": [hello_world, hello_world[:1]]}).json()["data"]
    np.testing.assert_allclose([item["embedding"] for item in data], [unit("hello world"), unit("hello")], atol=1e-6)


def test_the_models_own_ids_go_straight_to_the_engine(serve):
    server = serve(token_ids=TokenIds.MODEL)
    answer = server.post("/v1/embeddings", {"input": [[101, 265, 102], [101, 102]], "encoding_format": "base64"}).json()
    assert server.engine.calls[-1][1] == [[101, 265, 102], [101, 102]]
    assert answer["usage"]["prompt_tokens"] == 5
    assert len(base64.b64decode(answer["data"][0]["embedding"])) == 4 * DIM


@pytest.mark.parametrize("value", [[999999999], [-1], [[]], [[5], []], [10**30]])
def test_ids_outside_the_models_vocabulary_are_refused(serve, value):
    server = serve(token_ids=TokenIds.MODEL)
    assert server.post("/v1/embeddings", {"input": value}).status_code in {400, 422}
    assert server.post("/v1/embeddings", {"input": "fine"}).status_code == 200


# Several models


@pytest.fixture
def two(serve):
    return serve(
        FakeEngine(name="acme/embed", tasks=frozenset({Task.EMBED})),
        FakeEngine(name="acme/rank", tasks=frozenset({Task.RERANK})),
    )


@pytest.mark.parametrize("name", [None, "", "default/not-specified"])
def test_without_a_name_the_first_fitting_model_answers(two, name):
    assert two.post("/embeddings", {"input": "a", "model": name}).json()["model"] == "acme/embed"
    assert two.post("/rerank", {"query": "a", "documents": ["b"], "model": name}).json()["model"] == "acme/rank"


def test_an_unknown_name_is_400_and_lists_the_known_ones(two):
    answer = two.post("/embeddings", {"input": "a", "model": "nope"})
    assert answer.status_code == 400
    assert "'acme/embed', 'acme/rank'" in answer.json()["error"]["message"]
    assert answer.json()["error"]["code"] == "model_not_found"


def test_one_model_answers_to_any_name_with_its_own(served):
    assert served.post("/embeddings", {"input": "a", "model": "text-embedding-ada-002"}).json()["model"] == "fake/model"


def test_a_port_of_one_model_knows_only_that_one(serve):
    server = serve(FakeEngine(name="a"), FakeEngine(name="b"), only="b")
    assert server.post("/embeddings", {"input": "x", "model": "a"}).json()["model"] == "b"
    assert [entry["id"] for entry in server.get("/models").json()["data"]] == ["b"]


def test_models_lists_each_with_what_infinitys_clients_read(two):
    body = two.get("/v1/models").json()
    assert body["object"] == "list"
    assert [entry["id"] for entry in body["data"]] == ["acme/embed", "acme/rank"]
    entry = body["data"][0]
    assert entry["owned_by"] == "infinity"
    assert entry["capabilities"] == ["embed"]
    assert entry["stats"] == {"queue_fraction": 0.25, "queue_absolute": 8, "results_pending": 2, "batch_size": 32}


@pytest.mark.parametrize("root", ["/models", "/v1/models"])
@pytest.mark.parametrize("name", ["acme/embed", "acme%2Fembed"])
def test_a_model_is_found_by_its_name_in_the_path(two, root, name):
    assert two.get(f"{root}/{name}").json()["id"] == "acme/embed"


def test_an_unknown_model_in_the_path_is_404_unlike_an_unknown_path(two):
    model, path = two.get("/v1/models/acme/nope"), two.get("/v1/nope")
    assert model.status_code == path.status_code == 404
    assert model.json()["error"]["code"] == "model_not_found"
    assert path.json()["error"]["code"] == "route_not_found"
