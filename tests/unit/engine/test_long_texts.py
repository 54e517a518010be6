"""Texts longer than the model reads: averaged over pieces, or embedded chunk by chunk in their context."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import tiny
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.errors import CapabilityError, InputTooLargeError, InvalidInputError
from infinity_emb.types import EmbedOptions, TextOptions

AVERAGE = EmbedOptions(average_long=True)
WORDS = "tea is hot and coffee is hotter"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.tiny_bert(tmp_path_factory.mktemp("model"), max_seq_length=10)


def asked(folder, use, **options):
    async def main():
        args = EngineArgs(model_name_or_path=str(folder), engine="openvino", fidelity=0, **options)
        async with AsyncEmbeddingEngine.from_args(args) as engine:
            return await use(engine)

    return asyncio.run(main())


def test_a_long_text_is_the_mean_of_its_pieces_weighted_by_their_tokens(folder):
    words = (WORDS + " " + WORDS + " lima").split()

    async def use(engine):
        long = await engine.embed_result([" ".join(words), "tea"], AVERAGE)
        pieces = [" ".join(words[start : start + 8]) for start in range(0, len(words), 8)]
        return long, await engine.embed_result(pieces), await engine.embed_result(["tea"])

    long, pieces, short = asked(folder, use)
    mean = np.average(pieces.vectors, axis=0, weights=[10, 9])
    np.testing.assert_allclose(long.vectors[0], mean / np.linalg.norm(mean), atol=1e-5)
    np.testing.assert_allclose(long.vectors[1], short.vectors[0], atol=1e-6)
    assert (long.usage.averaged, long.usage.truncated, long.usage.prompt_tokens) == ((0,), (), 10 + 9 + 3)


def test_every_piece_stands_behind_the_prompt(folder):
    async def use(engine):
        options = EmbedOptions(TextOptions(prompt="query : "), average_long=True)
        pieces = ["query : " + part for part in ("tea is hot and coffee is", "hotter")]
        return await engine.embed_result([WORDS], options), await engine.embed_result(pieces)

    long, pieces = asked(folder, use)
    mean = np.average(pieces.vectors, axis=0, weights=[10, 5])
    np.testing.assert_allclose(long.vectors[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_too_many_pieces_are_refused(folder):
    with pytest.raises(InputTooLargeError, match="pieces"):
        asked(folder, lambda engine: engine.embed_result([WORDS * 40], AVERAGE), max_client_batch_size=4)


def test_chunks_see_each_other_and_one_alone_is_the_plain_vector_without_special_tokens(folder):
    async def use(engine):
        return (
            await engine.chunks_result([["tea is hot", "lima"]]),
            await engine.chunks_result([["tea is hot", "berlin"]]),
            await engine.multi_vector_result(["tea is hot lima"]),
        )

    first, second, states = asked(folder, use)
    assert first.spans == [[(1, 4), (4, 5)]]
    wanted = states.vectors[0][1:4].mean(axis=0)
    np.testing.assert_allclose(first.vectors[0], wanted / np.linalg.norm(wanted), atol=1e-5)
    assert np.abs(first.vectors[0] - second.vectors[0]).max() > 1e-3


@pytest.mark.parametrize(
    ("chunks", "word"), [([WORDS, WORDS], "reads 8 at once"), (["tea", ""], "no tokens"), ([], "at least one")]
)
def test_a_document_that_cannot_be_read_at_once_is_refused(folder, chunks, word):
    with pytest.raises(InvalidInputError, match=word):
        asked(folder, lambda engine: engine.chunks_result([chunks]))


def test_a_model_that_reads_its_first_token_cannot_embed_chunks(tmp_path):
    folder = tiny.tiny_bert(tmp_path, pooling="cls")
    with pytest.raises(CapabilityError, match="pools by cls"):
        asked(folder, lambda engine: engine.chunks_result([["tea"]]))


def test_the_view_of_token_states_ends_with_the_engine(folder):
    async def use(engine):
        await engine.multi_vector_result(["tea"])
        await engine.astop()
        await engine.astart()
        again = await engine.multi_vector_result(["tea"])
        assert again.vectors[0].shape == (3, 32)
        return engine

    engine = asked(folder, use)
    assert not engine.is_running


def test_an_embedder_is_not_asked_for_sparse_vectors(folder):
    with pytest.raises(CapabilityError, match="cannot give sparse vectors"):
        asked(folder, lambda engine: engine.sparse_result(["tea"]))
