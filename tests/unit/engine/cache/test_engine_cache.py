"""The vector cache behind an engine."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.backends.dummy import DummyBackend
from infinity_emb.errors import InvalidInputError
from infinity_emb.types import EmbedOptions, TextOptions


@pytest.fixture
def computed(monkeypatch):
    """Number of texts in each batch that the backend computed."""
    batches: list[int] = []
    start = DummyBackend.start

    def counting(self, arrays):
        batches.append(int((arrays["last_index"] > 0).sum()))
        return start(self, arrays)

    monkeypatch.setattr(DummyBackend, "start", counting)
    return batches


def engine(**options) -> AsyncEmbeddingEngine:
    return AsyncEmbeddingEngine(
        EngineArgs(model_name_or_path="any", engine="dummy", model_warmup=False, **{"vector_cache_mb": 8, **options})
    )


def test_equal_texts_are_computed_once_and_answered_alike(computed):
    async def run():
        async with engine() as served:
            first = await served.embed_result(["tea", "lima", "tea"])
            again = await served.embed_result(["lima", "tea"])
            np.testing.assert_array_equal(first.vectors[[1, 0]], again.vectors)
            np.testing.assert_array_equal(first.vectors[0], first.vectors[2])
            assert first.usage.prompt_tokens == 4 + 5 + 4
            assert again.usage.prompt_tokens == 9
            assert (served.cache_counts.memory_hits, served.cache_counts.misses) == (2, 2)

    asyncio.run(run())
    assert sum(computed) == 2


def test_duplicate_requests_in_flight_cost_one_computation(computed):
    async def run():
        async with engine() as served:
            results = await asyncio.gather(*(served.embed_result(["the same question"]) for _ in range(50)))
            assert len({result.vectors.tobytes() for result in results}) == 1

    asyncio.run(run())
    assert sum(computed) == 1


def test_options_that_change_the_vector_are_kept_apart_and_others_share():
    async def run():
        async with engine() as cached, engine(vector_cache_mb=0) as plain:
            for options in (
                EmbedOptions(),
                EmbedOptions(TextOptions(prompt="query: ")),
                EmbedOptions(normalize=False),
                EmbedOptions(dimensions=8),
                EmbedOptions(TextOptions(max_length=3)),
            ):
                expected = await plain.embed_result(["a longer text", "tea"], options)
                for _ in range(2):
                    got = await cached.embed_result(["a longer text", "tea"], options)
                    np.testing.assert_array_equal(got.vectors, expected.vectors)
                    assert got.usage == expected.usage
            assert cached.cache_counts.misses == 6
            assert plain.cache_counts is None

    asyncio.run(run())


def test_an_error_names_the_item_by_its_place_in_the_request():
    async def run():
        async with engine() as served:
            await served.embed_result(["a", "b"])
            long = "x" * 600
            with pytest.raises(InvalidInputError, match="Item 2"):
                await served.embed_result(["a", "b", long], EmbedOptions(TextOptions(truncate=False)))

    asyncio.run(run())


def test_the_disk_cache_serves_the_next_engine(tmp_path, computed):
    async def run():
        options = {"vector_cache_mb": 0, "vector_disk_cache_path": "kept", "cache_folder": str(tmp_path)}
        first, second = engine(**options), engine(**options)
        async with first, second:
            one = await first.embed_result(["tea", "lima"])
            two = await second.embed_result(["lima", "tea"])
            np.testing.assert_array_equal(one.vectors[[1, 0]], two.vectors)
            assert second.cache_counts.disk_hits == 2
        first.close()
        second.close()
        assert list((tmp_path / "vectors").glob("*.sqlite"))

    asyncio.run(run())
    assert sum(computed) == 2
