"""Models of whole words and coded vectors through the engine: start-up with its self-check, vectors, and what is refused."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import tiny
import tiny_modules
from forward import spec_of
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.engine.fidelity.probes import probe_features
from infinity_emb.engine.words import weigh_words
from infinity_emb.errors import CapabilityError
from infinity_emb.models.dummy import DummyPreprocessor, dummy_spec
from infinity_emb.models.features import Features
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.types import Task


def run(folder, ask):
    """What `ask` makes of an engine that serves the folder."""

    async def main():
        args = EngineArgs(
            model_name_or_path=str(folder),
            engine="openvino",
            dtype="float32",
            device="cpu",
            threads=1,
            cache_folder=str(folder / "cache"),
        )
        async with AsyncEmbeddingEngine.from_args(args) as engine:
            return await ask(engine)

    pytest.importorskip("openvino")
    return asyncio.run(main())


def test_a_bag_whose_first_words_weigh_nothing_starts_and_gives_unit_vectors(tmp_path):
    """The first computation of a start is of token 1, here a word that weighs nothing."""

    async def ask(engine):
        result = await engine.embed_result(["tea for the fox", "", "the the"])
        with pytest.raises(CapabilityError, match="no vectors of single tokens"):
            await engine.multi_vector_result(["tea"])
        return result

    result = run(tiny_modules.bag(tmp_path), ask)
    np.testing.assert_allclose(np.linalg.norm(result.vectors, axis=1), [1, 0, 0], atol=1e-6)
    assert result.usage.prompt_tokens == 3  # of the first text; the others hold nothing that counts


def test_a_vocabulary_that_knows_none_of_the_probes_is_checked_on_its_own_words(tmp_path):
    folder = tiny_modules.of_words(tmp_path)
    words = [f"word{number}" for number in range(36)]
    tiny.edit_json(folder / "0_WordEmbeddings/whitespacetokenizer_config.json", vocab=words)
    items = probe_features(make_preprocessor(spec_of(folder)), spec_of(folder))
    assert [item.cost for item in items] == [1, 2, 3, 7, 40, 200]

    async def ask(engine):
        assert engine.card.extra["fidelity_min_cosine"] > 0.9999
        return await engine.embed_result(["word3 word35"])

    assert run(folder, ask).vectors.shape == (1, 24)


def test_tokens_of_weighed_words_have_vectors_but_chunks_have_none(tmp_path):
    async def ask(engine):
        with pytest.raises(CapabilityError, match="mean of weighed words"):
            await engine.chunks_result([["tea fox", "coffee"]])
        return await engine.multi_vector_result(["tea, unknown fox"])

    result = run(tiny_modules.of_words(tmp_path, inside=("WordWeights", "CNN")), ask)
    assert result.vectors[0].shape == (2, 21)


def test_chunks_of_a_recurrent_model_have_seen_the_whole_document(tmp_path):
    async def ask(engine):
        together = await engine.chunks_result([["tea fox", "coffee lima"]])
        alone = await engine.embed_result(["tea fox", "coffee lima"])
        whole = await engine.chunks_result([["tea fox coffee lima"]])
        return together, alone, whole, await engine.embed_result(["tea fox coffee lima"])

    together, alone, chunk, text = run(tiny_modules.of_words(tmp_path, inside=("LSTM",)), ask)
    assert (abs(together.vectors - alone.vectors).max(axis=1) > 1e-3).all()
    np.testing.assert_allclose(chunk.vectors, text.vectors, atol=1e-6)


def test_of_a_query_only_the_largest_weights_are_kept():
    features = [Features(np.array([5, 3, 3, 1, 4])), Features(np.array([2, 1]))]
    table = np.array([0, 0.5, 0, -0.75, 0.25, 2.0], np.float32)
    reader = DummyPreprocessor(dummy_spec("any", Task.EMBED))
    words, weights = weigh_words(features, table, reader, 2)
    assert [list(row) for row in words] == [[3, 5], [1]]
    assert [list(row) for row in weights] == [[-0.75, 2.0], [0.5]]
    assert len(weigh_words(features, table, reader)[0][0]) == 4
