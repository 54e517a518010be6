"""A model with several heads: what is asked for comes from one forward pass, over HTTP too."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

import tiny
from cases.served import Served
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.engine.heads import weigh_tokens

WIDTH = 24
TEXTS = ["tea is hot", "lima is the capital of peru"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tiny.tiny_xlm_roberta(tmp_path_factory.mktemp("heads") / "model", pooling="cls")
    chance = np.random.default_rng(2)
    for name, width in (("sparse_linear", 1), ("colbert_linear", WIDTH)):
        weight = 0.1 * chance.standard_normal((width, tiny.HIDDEN)).astype(np.float32)
        save_file({"weight": weight, "bias": np.ones(width, np.float32)}, folder / f"{name}.safetensors")
    return folder


def engine_of(folder, **options):
    settings = {"engine": "onnxruntime", "threads": 1, "fidelity": 0.0, "model_warmup": False, **options}
    return AsyncEmbeddingEngine.from_args(EngineArgs(model_name_or_path=str(folder), **settings))


@pytest.fixture(scope="module")
def served(folder):
    """An application around the model, and how often it computed."""
    engine = engine_of(folder)
    engine.start()
    (backend,) = engine._runtime.backends
    start, passes = backend.start, []
    backend.start = lambda arrays: passes.append(1) or start(arrays)
    yield Served(engine), passes
    backend.start = start
    engine.stop(grace_s=0.0)


def test_a_word_weighs_what_its_heaviest_token_does_and_ends_weigh_nothing():
    ids, weights = np.array([0, 7, 5, 7, 9, 2]), np.array([9, 0.5, 0.25, 2, 0, 3], np.float32)
    words, heaviest = weigh_tokens(ids, weights, (0, 2))
    assert words.tolist() == [5, 7]
    assert heaviest.tolist() == [0.25, 2.0]
    words, heaviest = weigh_tokens(ids, np.zeros(6, np.float32), ())
    assert words.tolist() == heaviest.tolist() == []


@pytest.mark.parametrize("outputs", [["dense"], ["sparse", "dense"], ["multi_vector", "muvera", "sparse", "dense"]])
def test_the_native_route_computes_once_whatever_is_asked(outputs, served):
    application, passes = served
    passes.clear()
    answer = application.post("/embeddings", input=TEXTS, outputs=outputs).json()
    assert len(passes) == 1
    keys = {"sparse": "sparse_embedding", "multi_vector": "multi_vector", "muvera": "embedding", "dense": "embedding"}
    for entry in answer["data"]:
        assert {keys[name] for name in outputs} <= entry.keys()
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"]


def test_results_asked_for_together_equal_those_asked_for_alone(served):
    application, _ = served
    together = application.post("/embeddings", input=TEXTS, outputs=["dense", "sparse", "multi_vector"]).json()["data"]
    dense = application.post("/embeddings", input=TEXTS).json()["data"]
    sparse = application.post("/embed_sparse", inputs=TEXTS).json()
    vectors = application.post("/embed_all", inputs=TEXTS).json()
    cut = application.post("/embeddings", input=TEXTS, outputs=["multi_vector"], dimensions=8).json()["data"]
    for place, entry in enumerate(together):
        np.testing.assert_allclose(entry["embedding"], dense[place]["embedding"], atol=1e-6)
        words = {one["index"]: one["value"] for one in sparse[place]}
        assert words
        assert dict(zip(*entry["sparse_embedding"].values(), strict=True)) == pytest.approx(words, abs=1e-6)
        found = np.array(entry["multi_vector"])
        np.testing.assert_allclose(found, vectors[place], atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
        kept = found[:, :8] / np.linalg.norm(found[:, :8], axis=1, keepdims=True)
        np.testing.assert_allclose(cut[place]["embedding"], kept, atol=1e-5)
        assert entry["shape"] == [len(found), WIDTH]


def test_more_dimensions_than_a_head_has_are_refused(served):
    answer = served[0].post("/embeddings", input="tea", outputs=["multi_vector", "sparse"], dimensions=WIDTH + 1)
    assert answer.status_code == 400
    assert f"between 1 and {WIDTH}" in answer.text


def test_a_model_whose_heads_may_not_be_read_says_how_to_allow_it(tmp_path):
    folder = tiny.tiny_xlm_roberta(tmp_path / "model", pooling="cls")
    (folder / "sparse_linear.pt").write_bytes(b"never opened")
    engine = engine_of(folder)
    engine.start()
    try:
        application = Served(engine)
        assert application.post("/embeddings", input="tea").status_code == 200
        for answer in (
            application.post("/embed_sparse", inputs="tea"),
            application.post("/embeddings", input="tea", outputs=["sparse", "dense"]),
        ):
            assert answer.status_code in {400, 424}  # the second is TEI's
            assert "sparse_linear.pt" in answer.text
            assert "--allow-pickle" in answer.text
    finally:
        engine.stop(grace_s=0.0)
