"""Cases that need a real model: results depend on a text alone, never on its neighbours, its place or the load."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from infinity_emb import AsyncEmbeddingEngine, AsyncEngineArray, EngineArgs
from infinity_emb.types import EmbeddingDtype
from tiny import tiny_bert

WORDS = ["alpha", "beta", "gamma", "delta", "river", "stone", "cloud", "seven", "green", "under", "moon", "table"]
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("tiny")
    return {
        "embed": tiny_bert(root / "embed"),
        "rerank": tiny_bert(root / "rerank", labels=("yes",), seed=1),
        "classify": tiny_bert(root / "classify", labels=("a", "b", "c"), seed=2),
    }


def args_of(folders, task, **options):
    return EngineArgs(model_name_or_path=str(folders[task]), engine="openvino", served_model_name=task, **options)


@pytest.fixture(scope="module")
def embedder(folders):
    engine = AsyncEmbeddingEngine.from_args(args_of(folders, "embed"))
    engine.start()
    yield engine
    engine.stop()


def embed(engine, texts, **options):
    vectors, _ = asyncio.run(engine.embed(sentences=texts, **options))
    return np.stack(vectors)


def shuffled_texts(count, longest):
    random = np.random.default_rng(0)
    lengths = random.permutation(np.arange(count) % longest + 1)
    return [" ".join([f"unique{n}", *random.choice(WORDS, length)]) for n, length in enumerate(lengths)]


def test_a_pooled_model_gives_one_flat_vector_a_text(embedder):
    vectors, usage = asyncio.run(embedder.embed(sentences=["alpha", "beta gamma"]))
    assert [vector.ndim for vector in vectors] == [1, 1]
    assert len(vectors[0]) == embedder.card.dim
    assert usage > 0


def test_each_vector_belongs_to_its_text_whatever_the_lengths(embedder):
    texts = shuffled_texts(100, 60)
    together = embed(embedder, texts)
    alone = np.stack([embed(embedder, [text])[0] for text in texts])
    np.testing.assert_allclose(together, alone, atol=TOLERANCE)


@pytest.mark.parametrize("size", [1, 2, 8, 16, 64, 256])
def test_a_text_has_the_same_vector_in_batches_of_every_size(embedder, size):
    probe = embed(embedder, ["the probe text"])[0]
    texts = [*shuffled_texts(size - 1, 40), "the probe text"]
    np.testing.assert_allclose(embed(embedder, texts)[-1], probe, atol=TOLERANCE)


def test_a_long_neighbour_changes_nothing(embedder):
    alone = embed(embedder, ["short"])
    np.testing.assert_allclose(embed(embedder, ["short", "alpha beta " * 400])[:1], alone, atol=TOLERANCE)


def test_empty_and_blank_texts_have_finite_unit_vectors_and_disturb_nobody(embedder):
    vectors = embed(embedder, ["alpha", "", "   ", "beta"])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=TOLERANCE)
    np.testing.assert_allclose(
        vectors[[0, 3]], np.vstack([embed(embedder, [t]) for t in ("alpha", "beta")]), atol=TOLERANCE
    )
    np.testing.assert_allclose(vectors[1], vectors[2], atol=TOLERANCE)


def test_parallel_requests_do_not_mix(embedder):
    texts = shuffled_texts(200, 30)

    async def all_at_once():
        return await asyncio.gather(*(embedder.embed(sentences=[text, "the probe text"]) for text in texts))

    answers = asyncio.run(all_at_once())
    alone = embed(embedder, [*texts, "the probe text"])
    for (vectors, _), vector in zip(answers, alone[:-1], strict=True):
        np.testing.assert_allclose(vectors[0], vector, atol=TOLERANCE)
        np.testing.assert_allclose(vectors[1], alone[-1], atol=TOLERANCE)


def test_mixed_loads_of_short_and_very_long_texts_count_and_compute_as_one_by_one(folders):
    texts = [("alpha " * 2000 if number % 3 == 0 else f"beta {number}") for number in range(60)]

    async def main():
        array = AsyncEngineArray.from_args([args_of(folders, "embed"), args_of(folders, "rerank")])
        await array.astart()
        single = [await array.embed(model="embed", sentences=[text]) for text in texts]
        scores = [await array.rerank(model="rerank", query="q", docs=[text]) for text in texts]
        parallel = asyncio.gather(*(array.embed(model="embed", sentences=[text]) for text in texts))
        ranked = asyncio.gather(*(array.rerank(model="rerank", query="q", docs=[text]) for text in texts))
        answers = await parallel, await ranked
        await array.astop()
        return single, scores, *answers

    single, scores, parallel, ranked = asyncio.run(main())
    for (expected, usage), (vectors, count) in zip(single, parallel, strict=True):
        np.testing.assert_allclose(vectors[0], expected[0], atol=TOLERANCE)
        assert count == usage
    for (expected, usage), (rows, count) in zip(scores, ranked, strict=True):
        assert rows[0].relevance_score == pytest.approx(expected[0].relevance_score, abs=TOLERANCE)
        assert count == usage


def test_usage_counts_real_tokens_after_truncation(embedder):
    def usage(texts):
        return asyncio.run(embedder.embed(sentences=texts))[1]

    limit = embedder.card.max_length
    tokens = len(embedder.tokenize(["alpha beta"])[0])
    assert usage(["alpha beta"]) == tokens
    assert usage(["alpha " * 5000]) == limit
    assert usage(["alpha beta", "alpha " * 5000]) == tokens + limit


@pytest.mark.parametrize("dimensions", [1, 8, None])
def test_fewer_dimensions_are_a_slice_made_unit_again(embedder, dimensions):
    full = embed(embedder, ["some text"])[0]
    cut = embed(embedder, ["some text"], matryoshka_dim=dimensions)[0]
    kept = full[:dimensions]
    np.testing.assert_allclose(cut, kept / np.linalg.norm(kept), atol=TOLERANCE)


def test_a_small_format_of_a_text_does_not_depend_on_its_neighbours(embedder):
    vectors = embed(embedder, ["x", "y", "z"])
    for dtype in EmbeddingDtype:
        together = embedder.quantize(vectors, dtype)
        np.testing.assert_array_equal(together[:1], embedder.quantize(vectors[:1], dtype))


def test_two_models_give_their_own_answers_for_the_same_text(folders):
    async def main():
        array = AsyncEngineArray.from_args([args_of(folders, name) for name in folders])
        await array.astart()
        embedded, _ = await array.embed(model="embed", sentences=["x"])
        narrow, _ = await array.embed(model="embed", sentences=["x"], matryoshka_dim=4)
        ranked, _ = await array.rerank(model="rerank", query="x", docs=["x"])
        labels, _ = await array.classify(model="classify", sentences=["x"])
        again, _ = await array.embed(model="embed", sentences=["x"])
        await array.astop()
        return embedded, narrow, ranked, labels, again

    embedded, narrow, ranked, labels, again = asyncio.run(main())
    np.testing.assert_array_equal(embedded[0], again[0])
    assert narrow[0].shape == (4,)
    assert 0.0 < ranked[0].relevance_score < 1.0
    assert {element["label"] for element in labels[0]} == {"a", "b", "c"}


def test_the_real_model_puts_a_paraphrase_closest(minilm_folder):
    args = EngineArgs(model_name_or_path=str(minilm_folder), engine="openvino")

    async def main():
        async with AsyncEmbeddingEngine.from_args(args) as engine:
            texts = ["How do I bake bread?", "What is the way to make a loaf?", "The train leaves at noon."]
            vectors, _ = await engine.embed(sentences=texts)
            return np.stack(vectors)

    vectors = asyncio.run(main())
    assert vectors.shape == (3, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=TOLERANCE)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]
