"""Sparse weights, a vector a token, and chunks in context, in every form that clients ask for."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from api.fake_engine import DIM, FakeEngine, fake_vector
from infinity_emb.config.choices import TokenIds
from infinity_emb.types import Task

SPARSE = {"tasks": frozenset({Task.SPARSE})}
LATE = {"tasks": frozenset({Task.MULTI_VECTOR, Task.RERANK})}
EMBEDDER = {"tasks": frozenset({Task.EMBED})}


def matrix(text):
    return np.stack([fake_vector(word) for word in text.split()])


def test_tei_gets_index_and_value_of_every_word(serve):
    server = serve(FakeEngine(**SPARSE))
    wanted = [
        [{"index": 3, "value": 0.5}, {"index": 8, "value": 1.25}],
        [{"index": 3, "value": 0.5}, {"index": 9, "value": 1.25}],
    ]
    assert server.post("/embed_sparse", {"inputs": ["a", "bc"]}).json() == wanted
    assert server.post("/", {"inputs": ["a", "bc"]}).json() == wanted
    assert server.get("/info").json()["model_type"] == {"embedding": {"pooling": "splade"}}


def test_sparse_embeddings_are_written_as_indices_and_values(serve):
    server = serve(FakeEngine(**SPARSE))
    for body in ({"input": "a"}, {"input": "a", "outputs": ["sparse"]}):
        (entry,) = server.post("/embeddings", body).json()["data"]
        assert entry == {
            "object": "embedding",
            "index": 0,
            "sparse_embedding": {"indices": [3, 8], "values": [0.5, 1.25]},
        }


def test_embed_all_gives_a_vector_a_token(serve):
    for engine in (LATE, EMBEDDER):
        answer = serve(FakeEngine(**engine)).post("/embed_all", {"inputs": ["a b c", "d"]}).json()
        assert [len(rows) for rows in answer] == [3, 1]
        np.testing.assert_allclose(answer[0], matrix("a b c"), atol=1e-6)


def test_a_late_interaction_model_answers_embeddings_with_nested_lists_or_flat_base64(serve):
    server = serve(FakeEngine(**LATE))
    (entry,) = server.post("/embeddings", {"input": "a b c"}).json()["data"]
    np.testing.assert_allclose(entry["embedding"], matrix("a b c"), atol=1e-6)
    assert entry["shape"] == [3, DIM]
    (entry,) = server.post("/embeddings", {"input": "a b c", "encoding_format": "base64"}).json()["data"]
    flat = np.frombuffer(base64.b64decode(entry["embedding"]), "<f4")
    np.testing.assert_allclose(flat.reshape(entry["shape"]), matrix("a b c"), atol=1e-6)


def test_several_outputs_come_in_one_answer(serve):
    server = serve(FakeEngine(**EMBEDDER))
    body = {"input": ["a b", "c"], "outputs": ["multi_vector", "dense"]}
    first, second = server.post("/v1/embeddings", body).json()["data"]
    assert np.array(first["embedding"]).shape == (DIM,)
    np.testing.assert_allclose(first["multi_vector"], matrix("a b"), atol=1e-6)
    assert (first["shape"], second["shape"]) == ([2, DIM], [1, DIM])


@pytest.mark.parametrize(
    ("engine", "outputs", "status", "word"),
    [
        (EMBEDDER, ["sparse"], 400, "it gives: dense"),
        (LATE, ["dense"], 400, "it gives: multi_vector"),
        (EMBEDDER, ["colbert"], 422, "'sparse'"),
    ],
)
def test_an_output_that_is_not_there_is_refused_by_name(serve, engine, outputs, status, word):
    answer = serve(FakeEngine(**engine)).post("/embeddings", {"input": "a", "outputs": outputs})
    assert answer.status_code == status
    assert word in answer.json()["message"]


def test_a_matrix_and_its_encoding_of_a_fixed_size_come_together(serve):
    server = serve(FakeEngine(**LATE))
    (entry,) = server.post("/embeddings", {"input": "a b", "outputs": ["muvera", "multi_vector"]}).json()["data"]
    np.testing.assert_allclose(entry["embedding"], fake_vector(("muvera", "a b")), atol=1e-6)
    np.testing.assert_allclose(entry["multi_vector"], matrix("a b"), atol=1e-6)
    refused = serve(FakeEngine(**EMBEDDER)).post("/embeddings", {"input": "a", "outputs": ["muvera"]})
    assert refused.status_code == 400


def test_pooling_answers_as_vllm_does(serve):
    late, embedder = serve(FakeEngine(**LATE)), serve(FakeEngine(**EMBEDDER))
    (entry,) = late.post("/pooling", {"input": "a b", "model": "m"}).json()["data"]
    np.testing.assert_allclose(entry["data"], matrix("a b"), atol=1e-6)
    (entry,) = embedder.post("/pooling", {"input": "a b"}).json()["data"]
    assert np.array(entry["data"]).shape == (DIM,)
    (entry,) = embedder.post("/v1/pooling", {"input": "a b", "task": "token_embed"}).json()["data"]
    assert np.array(entry["data"]).shape == (2, DIM)


def test_late_chunking_takes_the_inputs_as_one_document_and_gives_spans(serve):
    server = serve(FakeEngine(**EMBEDDER, sees_neighbours=True))
    data = server.post("/v1/embeddings", {"input": ["a", "b"], "late_chunking": True}).json()["data"]
    assert [entry["span"] for entry in data] == [[0, 1], [1, 2]]
    wanted = fake_vector(("b", "a", "b"))
    np.testing.assert_allclose(data[1]["embedding"], wanted, atol=1e-6)
    refused = serve(FakeEngine(**EMBEDDER)).post("/v1/embeddings", {"input": ["a"], "late_chunking": True})
    assert refused.status_code == 400


def test_late_chunking_wants_texts_not_ids_of_the_model(serve):
    body = {"input": [[15339], [1917]], "late_chunking": True}
    openais = serve(FakeEngine(**EMBEDDER, sees_neighbours=True)).post("/v1/embeddings", body).json()["data"]
    assert [entry["span"] for entry in openais] == [[0, 1], [1, 2]]
    own = serve(FakeEngine(**EMBEDDER, sees_neighbours=True), token_ids=TokenIds.MODEL)
    assert own.post("/v1/embeddings", body).status_code == 422


def test_voyages_chunks_are_embedded_in_context_where_the_model_can(serve):
    body = {"inputs": [["a", "b"], ["c"]]}
    answer = serve(FakeEngine(**EMBEDDER, sees_neighbours=True)).post("/v1/contextualizedembeddings", body)
    assert answer.headers["x-late-chunking"] == "true"
    groups = answer.json()["data"]
    np.testing.assert_allclose(groups[0]["data"][1]["embedding"], fake_vector(("b", "a", "b")), atol=1e-6)
    assert groups[1]["data"][0]["span"] == [0, 1]
    alone = serve(FakeEngine(**EMBEDDER)).post("/v1/contextualizedembeddings", body)
    assert alone.headers["x-late-chunking"] == "false"
