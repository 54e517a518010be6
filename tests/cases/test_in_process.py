"""Cases about the Python interface: its life cycle, its results, and answers that must not mix."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time

import numpy as np
import pytest

from cases.faults import WAIT_S, gated
from cases.served import Served
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from tiny import tiny_bert


def dummy(task: str | None = None) -> AsyncEmbeddingEngine:
    return AsyncEmbeddingEngine.from_args(EngineArgs(model_name_or_path="some/dummy", engine="dummy", task=task))


async def embed(engine) -> np.ndarray:
    vectors, _ = await engine.embed(sentences=["x"])
    return vectors[0]


def test_b110_an_engine_can_be_opened_again_and_is_the_same():
    engine = dummy()

    async def main():
        found = []
        for _ in range(2):
            async with engine:
                found.append(await embed(engine))
        return found

    first, second = asyncio.run(main())
    np.testing.assert_array_equal(first, second)


def test_b110_starting_and_stopping_twice_does_no_harm():
    engine = dummy()

    async def main():
        await engine.astart()
        await engine.astart()
        vector = await embed(engine)
        await engine.astop()
        await engine.astop()
        return vector

    assert asyncio.run(main()).shape == (384,)
    assert not engine.is_running


def test_b110_use_before_start_and_after_stop_raises_at_once():
    engine = dummy()

    async def main():
        with pytest.raises(ValueError, match="not running"):
            await asyncio.wait_for(embed(engine), WAIT_S)
        async with engine:
            await embed(engine)
        with pytest.raises(ValueError, match="not running"):
            await asyncio.wait_for(embed(engine), WAIT_S)

    asyncio.run(main())


def test_b110_a_cancelled_call_leaves_the_engine_usable():
    engine = dummy()

    async def main():
        async with engine:
            with gated(engine) as gate:
                task = asyncio.create_task(embed(engine))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                gate.open()
            return await asyncio.wait_for(embed(engine), WAIT_S)

    assert asyncio.run(main()).shape == (384,)


def test_b110_stopping_is_quick_and_leaves_no_thread():
    before = set(threading.enumerate())
    engine = dummy()

    async def main():
        async with engine:
            await embed(engine)
            started_s = time.monotonic()
        return time.monotonic() - started_s

    assert asyncio.run(main()) < 2.0
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("infinity")]


def test_b111_results_can_be_written_as_json():
    async def main():
        async with dummy() as embedder, dummy("rerank") as reranker, dummy("classify") as classifier:
            vectors, tokens = await embedder.embed(sentences=["x"])
            ranked, _ = await reranker.rerank(query="q", docs=["a", "b"])
            labelled, _ = await classifier.classify(sentences=["x"])
            return [vector.tolist() for vector in vectors], tokens, [row._asdict() for row in ranked], labelled

    result = asyncio.run(main())
    assert json.loads(json.dumps(result)) == json.loads(json.dumps(list(result)))
    (vector,), tokens, ranked, ((best, *_),) = json.loads(json.dumps(result))
    assert len(vector) == 384
    assert type(tokens) is int
    assert set(ranked[0]) == {"relevance_score", "document", "index"}
    assert set(best) == {"label", "score"}


@pytest.mark.parametrize("kept", [{"vector_cache_mb": 8}, {"vector_cache_mb": 0}], ids=["memory and disk", "disk"])
def test_b039_no_answer_is_another_ones_whatever_is_asked_before(folders, start, tmp_path, kept):
    """With and without a cache, one file of it for all models."""
    other = tiny_bert(tmp_path / "other", seed=9, prompts={"query": "query: "})
    folders = {"first": folders["embed"], "second": other, "rerank": folders["rerank"], "classify": folders["classify"]}
    options = {"cache_folder": str(tmp_path / "cache"), "vector_disk_cache_path": "one file for all", **kept}
    engines, others = (
        [start(folder, served_model_name=name, **given) for name, folder in folders.items()] for given in (options, {})
    )
    cached, plain = Served(*engines), Served(*others)
    calls = [
        ("/v1/embeddings", {"model": "first", "input": "x"}),
        ("/v1/embeddings", {"model": "second", "input": "x"}),
        ("/v1/embeddings", {"model": "first", "input": "x", "dimensions": 8}),
        ("/v1/embeddings", {"model": "first", "input": "x", "normalize": False}),
        ("/v1/embeddings", {"model": "first", "input": "x", "embedding_dtype": "int8"}),
        ("/v1/embeddings", {"model": "second", "input": "x", "prompt_name": "query"}),
        ("/v1/embeddings", {"model": "second", "input": "query: x"}),
        ("/rerank", {"model": "rerank", "query": "x", "documents": ["x"]}),
        ("/rerank", {"model": "rerank", "query": "x", "documents": ["x"], "raw_scores": True}),
        ("/classify", {"model": "classify", "input": ["x"]}),
        ("/classify", {"model": "rerank", "input": ["x"]}),
    ]
    expected = [essence(plain.post(path, **body)) for path, body in calls]
    for _ in range(2):
        assert [essence(cached.post(path, **body)) for path, body in calls] == expected
    assert len({json.dumps(one) for one in expected}) == len(calls) - 1  # a prompt and the same text written out
    counts = engines[0].cache_counts
    assert counts.memory_hits + counts.disk_hits > counts.misses  # or nothing was reused, and nothing tested


def test_b039_another_model_under_the_same_name_does_not_answer_for_the_first(folders, start, tmp_path, embedder):
    other = tiny_bert(tmp_path / "other", seed=9)
    options = {"vector_disk_cache_path": "kept", "cache_folder": str(tmp_path), "served_model_name": "same"}
    for folder in (other, folders["embed"]):
        engine = start(folder, **options)
        vector = Served(engine).embed("x")
        engine.stop()
    np.testing.assert_allclose(vector, embedder.embed("x"), atol=1e-6)


def essence(answer) -> object:
    """What of an answer must not change: no ids and no times."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return body["usage"], body.get("data"), body.get("results")


def test_b113_acceleration_that_cannot_work_is_a_warning_and_changes_nothing(
    folders, start, embedder, monkeypatch, caplog
):
    import torch

    def unavailable(*_, **__):
        raise RuntimeError("Dynamo is not supported here")

    monkeypatch.setattr(torch, "compile", unavailable)
    with caplog.at_level(logging.WARNING, logger="infinity_emb"):
        server = Served(start(folders["embed"], engine="torch", compile=True))
        vectors = server.embed(["tea", "lima"])
    assert "Dynamo is not supported here" in caplog.text
    np.testing.assert_allclose(vectors, embedder.embed(["tea", "lima"]), atol=1e-5)


def test_b113_acceleration_that_fails_at_the_first_batch_is_given_up_too(folders, start, embedder, monkeypatch, caplog):
    import torch

    def compiles_never(module, **_):
        def call(*_, **__):
            raise RuntimeError("no compiler on this machine")

        del module
        return call

    monkeypatch.setattr(torch, "compile", compiles_never)
    server = Served(start(folders["embed"], engine="torch", compile=True))
    with caplog.at_level(logging.WARNING, logger="infinity_emb"):
        vectors = server.embed(["tea", "lima"])
    assert "no compiler on this machine" in caplog.text
    np.testing.assert_allclose(vectors, embedder.embed(["tea", "lima"]), atol=1e-5)
