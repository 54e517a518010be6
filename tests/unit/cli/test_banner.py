"""The start-up block."""

from __future__ import annotations

from infinity_emb.cli.banner import facts, render
from infinity_emb.types import Modality, ModelCard, Task

EMBEDDER = ModelCard(
    served_name="one/embedder",
    model_id="one/embedder",
    source="Hugging Face hub (cached)",
    revision="abc123",
    tasks=frozenset({Task.EMBED}),
    modalities=frozenset({Modality.TEXT}),
    backend="openvino",
    device="cpu",
    dtype="float32",
    dim=384,
    max_length=256,
    pooling="mean",
    normalized=True,
    labels=(),
    prompts={"query": "query: ", "document": ""},
    default_prompt_name="query",
    batch_size=32,
    extra={"threads": 2, "notes": ""},
)
RERANKER = ModelCard(
    served_name="ranker",
    model_id="/models/ranker",
    source="local folder",
    revision=None,
    tasks=frozenset({Task.RERANK}),
    modalities=frozenset({Modality.TEXT}),
    backend="openvino",
    device="cpu",
    dtype="float32",
    dim=0,
    max_length=512,
    pooling="",
    normalized=False,
    labels=tuple(f"label{number}" for number in range(9)),
    prompts={},
    default_prompt_name=None,
    batch_size=32,
)


def test_one_model_says_everything_in_one_block():
    assert render([EMBEDDER], ["http://localhost:7997"]) == (
        """
  one/embedder
    source       Hugging Face hub (cached)
    revision     abc123
    task         embed (text)
    engine       openvino on cpu
    dtype        float32
    vectors      384 numbers, pooling mean, unit length
    max length   256 tokens
    prompts      query, document (default: query)
    threads      2

    URL          http://localhost:7997
    docs         http://localhost:7997/docs

  Try next
    curl http://localhost:7997/v1/embeddings -H 'content-type: application/json' -d '{"input": ["Hello, world"]}'
"""
    )


def test_with_several_models_the_examples_name_them():
    block = render([EMBEDDER, RERANKER], ["http://localhost:7997"])
    assert '-d \'{"model": "one/embedder", "input"' in block
    assert 'http://localhost:7997/rerank -H \'content-type: application/json\' -d \'{"model": "ranker"' in block
    assert "model        /models/ranker" in block
    assert "label7, …" in block
    assert "vectors      0" not in block


def test_on_a_socket_the_example_uses_it():
    block = render([EMBEDDER], ["unix:/run/x.sock"])
    assert "curl --unix-socket /run/x.sock http://localhost/v1/embeddings" in block
    assert "/docs" not in block


def test_facts_hold_plain_values():
    assert facts(RERANKER)["tasks"] == ["rerank"]
    assert facts(EMBEDDER)["dim"] == 384


def test_a_model_computed_as_tuned_says_so_and_how_to_ignore_it():
    tuned = {RERANKER.served_name: "/cache/tuned/x.json"}
    first, second, *_ = render([EMBEDDER, RERANKER], ["http://localhost:7997"], tuned).strip("\n").split("\n\n")
    assert "tuned" not in first
    assert "infinity_emb tune (/cache/tuned/x.json; --no-tuned ignores it)" in second
