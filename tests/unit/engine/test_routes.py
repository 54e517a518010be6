"""A model of two routes over HTTP: what chooses one, that caches keep them apart, and what is told of them."""

from __future__ import annotations

import numpy as np
import pytest

import tiny_routes
from cases.served import Served, message_of
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.engine.loader import load
from infinity_emb.errors import ConfigurationError, LoadError

TEXTS = ["tea is hot", "lima is the capital of peru", "sun"]


def arguments(folder, cache, **changes):
    fixed = {"engine": "openvino", "threads": 1, "dtype": "float32", "cache_folder": str(cache)}
    return EngineArgs(model_name_or_path=str(folder), **(fixed | changes))


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", params=[0, 4], ids=["not cached", "cached"])
def served(request, tmp_path_factory, cache):
    folder = tiny_routes.static_queries(tmp_path_factory.mktemp("routes"))
    engine = AsyncEmbeddingEngine.from_args(arguments(folder, cache, vector_cache_mb=request.param))
    engine.start()
    yield Served(engine), engine
    engine.close()


def test_the_kind_of_input_chooses_the_route_in_every_spelling(served):
    application, _ = served
    queries, documents = (application.embed(TEXTS, input_type=kind) for kind in ("query", "document"))
    assert abs(queries - documents).max() > 0.1
    np.testing.assert_allclose(application.embed(TEXTS), application.embed(TEXTS, prompt_name="document", prompt=""))
    for fields in ({"task": "retrieval.query"}, {"input_type": "search_query"}, {"prompt_name": "query"}):
        np.testing.assert_allclose(application.embed(TEXTS, **fields), queries, atol=1e-6)
    cut = application.embed(TEXTS, input_type="query", dimensions=8)
    kept = queries[:, :8]
    np.testing.assert_allclose(cut, kept / np.linalg.norm(kept, axis=1, keepdims=True), atol=1e-6)


def test_each_route_with_the_same_prompt_has_vectors_of_its_own_in_the_cache(served):
    application, engine = served
    found = [application.embed(TEXTS, input_type=kind, prompt="") for kind in ("query", "document", "query")]
    assert abs(found[0] - found[1]).max() > 0.1
    np.testing.assert_allclose(found[0], found[2], atol=1e-6)
    assert engine.cache_counts is None or engine.cache_counts.memory_hits >= len(TEXTS)


def test_an_unknown_task_is_refused_and_not_answered_by_the_default_route(served):
    assert "'query', 'document'" in message_of(served[0].post("/v1/embeddings", input=TEXTS, task="nearest"))


def test_the_model_tells_its_routes_and_the_check_of_each(served):
    application, engine = served
    (entry,) = application.get("/models").json()["data"]
    details = entry["details"]
    assert (details["routes"], details["default_route"]) == ("query, document", "document")
    assert (details["query_architecture"], details["document_architecture"]) == ("static", "bert")
    assert min(details["query_fidelity_min_cosine"], details["document_fidelity_min_cosine"]) > 0.9999
    assert len(entry["fingerprint"]) == 16
    assert len(engine.runtimes) == 2
    assert engine.is_healthy


def test_an_engine_of_routes_starts_again(served):
    application, engine = served
    before = application.embed(TEXTS, input_type="query")
    engine.stop()
    assert engine.runtimes == []
    engine.start()
    np.testing.assert_allclose(application.embed(TEXTS, input_type="query"), before, atol=1e-6)


def test_long_texts_and_single_tokens_go_the_same_way(served):
    application, engine = served
    long = " ".join(TEXTS * 20)
    (mean,) = application.embed([long], input_type="document", long_text="average")
    assert abs(mean - application.embed([long], input_type="document")[0]).max() > 0.001
    tokens = [len(engine.tokenize([TEXTS[0]], prompt_name=name)[0]) for name in ("query", "document")]
    assert tokens[0] != tokens[1]


def test_without_a_default_route_a_request_has_to_say_which(tmp_path, cache):
    folder = tiny_routes.heads(tmp_path, default_route=None, allow_empty_key=False)
    engine = AsyncEmbeddingEngine.from_args(arguments(folder, cache))
    engine.start()
    try:
        application = Served(engine)
        answer = application.post("/v1/embeddings", input=TEXTS)
        assert answer.status_code == 422
        assert "(query, document)" in message_of(answer)
        assert application.embed(TEXTS, input_type="query").shape == (3, 20)
    finally:
        engine.close()


def test_the_fingerprint_depends_on_every_route_and_is_expected_as_a_whole(tmp_path, cache):
    folder = tiny_routes.heads(tmp_path)
    first = load(arguments(folder, cache))
    first.close()
    fingerprint = first.card.extra["fingerprint"]
    load(arguments(folder, cache, expect_fingerprint=fingerprint)).close()
    weights = folder / "2_Router/query_0_Dense/model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(LoadError, match=str(fingerprint)):
        load(arguments(folder, cache, expect_fingerprint=fingerprint))


def test_what_applies_to_one_graph_alone_is_refused(tmp_path, cache):
    with pytest.raises(ConfigurationError, match="several routes"):
        load(arguments(tiny_routes.heads(tmp_path), cache, onnx_file="onnx/model.onnx"))
