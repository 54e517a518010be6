from __future__ import annotations

import numpy as np
import pytest

from api.fake_engine import DIM, LABELS, FakeEngine, fake_vector
from infinity_emb.errors import BackendError
from infinity_emb.types import Task


@pytest.fixture
def classifier(serve):
    return serve(FakeEngine(tasks=frozenset({Task.CLASSIFY})))


@pytest.mark.parametrize("path", ["/embed", "/", "/invocations"])
def test_one_string_still_gives_a_list_of_vectors(serve, path):
    server = serve(FakeEngine(tasks=frozenset({Task.EMBED})))
    assert np.array(server.post(path, {"inputs": "hello"}).json()).shape == (1, DIM)


def test_embed_takes_every_option(served):
    body = {
        "inputs": ["a"],
        "normalize": False,
        "truncate": None,
        "truncation_direction": "Right",
        "prompt_name": "query",
    }
    vectors = served.post("/embed", body).json()
    np.testing.assert_allclose(vectors[0], fake_vector("query: a"), atol=1e-6)


def test_embed_tells_tokens_and_times_in_headers(served):
    headers = served.post("/embed", {"inputs": ["a b", "c"]}).headers
    assert headers["x-compute-tokens"] == "7"
    assert headers["x-compute-characters"] == "4"
    assert headers["x-compute-time"].isdigit()


def test_a_string_gives_a_flat_list_of_labels(classifier):
    labels = classifier.post("/predict", {"inputs": "fine"}).json()
    assert {row["label"] for row in labels} == set(LABELS)
    assert [row["score"] for row in labels] == sorted((row["score"] for row in labels), reverse=True)


def test_two_strings_are_one_pair(classifier):
    answer = classifier.post("/predict", {"inputs": ["a", "b"]}).json()
    assert isinstance(answer[0], dict)
    assert classifier.engine.calls[-1][1] == [("a", "b")]


def test_lists_are_a_batch_of_texts_and_pairs(classifier):
    answer = classifier.post("/predict", {"inputs": [["a"], ["b", "c"]]}).json()
    assert len(answer) == 2
    assert classifier.engine.calls[-1][1] == ["a", ("b", "c")]


def test_parameters_make_the_answer_nested_and_limit_it(classifier):
    answer = classifier.post("/", {"inputs": "fine", "parameters": {"top_k": 2}}).json()
    assert len(answer) == 1
    assert len(answer[0]) == 2


@pytest.mark.parametrize("path", ["/similarity", "/"])
def test_similarity_is_the_cosine(served, path):
    body = {"inputs": {"source_sentence": "a", "sentences": ["a", "b"]}, "parameters": {"truncate": True}}
    same, other = served.post(path, body).json()
    left, right = fake_vector("a"), fake_vector("b")
    assert same == pytest.approx(1, abs=1e-6)
    assert other == pytest.approx(float(left @ right / np.linalg.norm(left) / np.linalg.norm(right)), abs=1e-6)


def test_tokenize_gives_ids_texts_and_byte_offsets(served):
    (tokens,) = served.post("/tokenize", {"inputs": "green tea"}).json()
    assert [token["text"] for token in tokens] == ["[CLS]", "green", "tea", "[SEP]"]
    assert tokens[0] == {"id": 1, "text": "[CLS]", "special": True, "start": None, "stop": None}
    (bare,) = served.post("/tokenize", {"inputs": ["green tea"], "add_special_tokens": False}).json()
    assert len(bare) == 2


def test_decode_takes_one_list_of_ids_or_several(served):
    assert served.post("/decode", {"ids": [1, 15, 2]}).json() == ["15"]
    assert served.post("/decode", {"ids": [[15], [16]], "skip_special_tokens": False}).json() == ["15", "16"]
    assert served.post("/decode", {"ids": [1, [2]]}).status_code == 422


@pytest.mark.parametrize(
    ("task", "key"), [(Task.EMBED, "embedding"), (Task.RERANK, "reranker"), (Task.CLASSIFY, "classifier")]
)
def test_info_names_the_kind_of_model_in_one_key(serve, task, key):
    facts = serve(FakeEngine(tasks=frozenset({task}))).get("/info").json()
    assert list(facts["model_type"]) == [key]
    for name in ("max_input_length", "max_client_batch_size", "max_batch_tokens"):
        assert isinstance(facts[name], int)


def test_vertex_answers_one_prediction_an_instance(serve):
    server = serve(FakeEngine(tasks=frozenset({Task.EMBED})))
    answer = server.post("/vertex", {"instances": [{"inputs": "a"}, {"inputs": "b"}]}).json()
    assert np.array(answer["predictions"]).shape == (2, 1, DIM)


@pytest.mark.parametrize(
    ("path", "tasks"),
    [("/embed_sparse", {Task.EMBED}), ("/embed_sparse", {Task.MULTI_VECTOR}), ("/embed_all", {Task.SPARSE})],
)
def test_what_no_model_offers_is_424_in_teis_form(serve, path, tasks):
    answer = serve(FakeEngine(tasks=frozenset(tasks))).post(path, {"inputs": "a"})
    assert answer.status_code == 424
    assert answer.json()["error_type"] == "Backend"


@pytest.mark.parametrize("path", ["/embed", "/predict", "/similarity", "/tokenize", "/decode", "/", "/vertex"])
@pytest.mark.parametrize("content", [b"{", b"", b"[]", b"{}"])
def test_a_broken_body_is_422_in_teis_form(served, path, content):
    answer = served.post_raw(path, content)
    assert answer.status_code == 422
    assert answer.json()["error_type"] == "Validation"
    assert isinstance(answer.json()["error"], str)


def test_a_failing_model_is_424(served):
    served.engine.error = BackendError("Item 0 made the model fail.", item_index=0)
    assert served.post("/embed", {"inputs": "a"}).status_code == 424


def test_tei_routes_stay_at_the_origin_with_a_prefix(serve):
    server = serve(url_prefix="/api")
    assert server.post("/embed", {"inputs": "a"}).status_code == 200
    assert server.post("/api/embed", {"inputs": "a"}).status_code == 200


def test_embed_with_coheres_texts_answers_as_cohere_does(served):
    assert served.post("/embed", {"texts": ["a"]}).json()["response_type"] == "embeddings_floats"
