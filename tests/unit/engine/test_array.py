from __future__ import annotations

import asyncio

import numpy as np
import pytest

from infinity_emb import AsyncEngineArray, EngineArgs
from infinity_emb.errors import ConfigurationError, ModelNotFoundError


def dummy(name, **options):
    return EngineArgs(model_name_or_path=name, engine="dummy", **options)


def test_engines_are_found_by_served_name_or_number():
    array = AsyncEngineArray.from_args([dummy("org/a"), dummy("b", served_model_name="bee", batch_size=8)])
    assert [engine.engine_args.served_model_name for engine in array] == ["org/a", "bee"]
    assert array["bee"] is array[1] is array[-1]
    assert array["org/a"] is array[0]
    assert [engine.card.batch_size for engine in array] == [32, 8]


@pytest.mark.parametrize("key", ["other", 2, -3])
def test_an_unknown_name_lists_the_known_ones_and_is_an_index_error(key):
    array = AsyncEngineArray.from_args([dummy("a"), dummy("b")])
    with pytest.raises(IndexError, match="a, b") as caught:
        array[key]
    assert isinstance(caught.value, ModelNotFoundError)


@pytest.mark.parametrize("key", ["anything", 0, 7])
def test_a_single_engine_answers_to_any_name(key):
    array = AsyncEngineArray.from_args([dummy("a")])
    assert array[key] is next(iter(array))


def test_two_models_of_one_name_are_a_value_error_before_anything_is_loaded():
    with pytest.raises(ValueError, match="Two models") as caught:
        AsyncEngineArray.from_args([dummy("a"), dummy("x/nowhere", served_model_name="a")])
    assert isinstance(caught.value, ConfigurationError)


def test_no_model_is_a_value_error():
    with pytest.raises(ValueError, match="no model"):
        AsyncEngineArray.from_args([])


def test_every_task_goes_to_the_named_model():
    async def main():
        array = AsyncEngineArray.from_args(
            [dummy("e"), dummy("r", task="rerank"), dummy("c", task="classify", embedding_dtype="int8")]
        )
        assert not array.is_running()
        await array.astart()
        assert array.is_running()
        vectors, _ = await array.embed(model="e", sentences=["a"])
        own, _ = await array["e"].embed(sentences=["a"])
        np.testing.assert_array_equal(vectors, own)
        ranked, _ = await array.rerank(model="r", query="q", docs=["a", "b"], top_n=1)
        answers, _ = await array.classify(model="c", sentences=["a"])
        assert (len(ranked), len(answers[0])) == (1, 3)
        await array.astop()
        assert not array.is_running()

    asyncio.run(main())
