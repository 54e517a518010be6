"""What neighbours do to a result: at most 1e-6 by default, nothing at all with `deterministic`."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

import tiny
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from texts import sample

TEXTS = [text for text in sample(60) if text.strip()]


@pytest.fixture(scope="module", params=["openvino", "onnxruntime"])
def engine_name(request):
    pytest.importorskip(request.param)
    return request.param


def results(folder, name, cache, texts=TEXTS, **options):
    """Vectors or scores of every text: in one request, in another order, in pieces at once, and one by one."""
    args = EngineArgs(model_name_or_path=str(folder), engine=name, cache_folder=str(cache), fidelity=0, **options)
    order = random.Random(1).sample(range(len(texts)), len(texts))

    async def main():
        async with AsyncEmbeddingEngine.from_args(args) as engine:

            async def ask(items):
                if "embed" in engine.capabilities:
                    return (await engine.embed_result(items)).vectors
                return (await engine.rerank_result("what is the capital", items)).scores[:, None]

            together = await ask(texts)
            shuffled = np.empty_like(together)
            shuffled[order] = await ask([texts[index] for index in order])
            pieces = await asyncio.gather(*(ask(texts[start : start + 7]) for start in range(0, len(texts), 7)))
            alone = [await ask([text]) for text in texts]
            return together, shuffled, np.concatenate(pieces), np.concatenate(alone)

    return asyncio.run(main())


@pytest.mark.parametrize("labels", [(), ("yes",)])
def test_deterministic_results_are_equal_to_the_last_bit(labels, engine_name, tmp_path):
    folder = tiny.tiny_bert(tmp_path / "model", labels=labels)
    first, *others = results(folder, engine_name, tmp_path, deterministic=True)
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("labels", [(), ("yes",)])
def test_neighbours_change_nothing_beyond_rounding(labels, engine_name, tmp_path, record_property):
    folder = tiny.tiny_bert(tmp_path / "model", labels=labels)
    first, *others = results(folder, engine_name, tmp_path)
    error = max(float(np.abs(first - other).max()) for other in others)
    record_property("max_abs_error", error)
    assert error <= 1e-6


def test_deterministic_results_are_those_of_the_default_within_rounding(engine_name, tmp_path):
    folder = tiny.tiny_bert(tmp_path / "model")
    plain = results(folder, engine_name, tmp_path)[0]
    np.testing.assert_allclose(results(folder, engine_name, tmp_path, deterministic=True)[0], plain, atol=1e-6)


def test_the_real_model_keeps_both_promises(minilm_folder, tmp_path):
    first, *others = results(minilm_folder, "openvino", tmp_path, TEXTS[::4])
    assert max(float(np.abs(first - other).max()) for other in others) <= 1e-6
    first, *others = results(minilm_folder, "openvino", tmp_path, TEXTS[::4], deterministic=True)
    for other in others:
        np.testing.assert_array_equal(first, other)
