"""Rotary frequencies equal their formulas, and fields are found where either generation of config.json has them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.frequencies import plain, read_frequencies

BASE = {"model_type": "llama", "max_position_embeddings": 4096}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def test_plain_frequencies_fall_from_one_by_equal_ratios():
    np.testing.assert_allclose(plain(10000.0, 8), [1.0, 0.1, 0.01, 0.001], rtol=1e-7)


@pytest.mark.parametrize(
    ("config", "base"),
    [
        ({}, 500.0),
        ({"rope_theta": 100.0}, 100.0),
        ({"rope_parameters": {"rope_theta": 100.0, "rope_type": "default"}}, 100.0),
        ({"rope_theta": 7.0, "rope_parameters": {"rope_theta": 100.0}}, 100.0),
        ({"rope_theta": 100.0, "rope_scaling": None}, 100.0),
    ],
)
def test_the_base_is_found_in_old_and_new_fields(config, base):
    np.testing.assert_array_equal(read_frequencies(BASE | config, 16, 500.0).radians, plain(base, 16))


def test_a_kind_of_layer_has_its_own_base():
    nested = {"full_attention": {"rope_theta": 100.0}, "sliding_attention": {"rope_theta": 50.0}}
    config = BASE | {"rope_parameters": nested, "rope_theta": 3.0}
    assert read_frequencies(config, 16, 9.0, "sliding_attention").radians[1] == plain(50.0, 16)[1]
    assert read_frequencies(BASE | {"rope_theta": 3.0}, 16, 9.0, "full_attention").radians[1] == plain(9.0, 16)[1]


def test_linear_scaling_stretches_all():
    config = BASE | {"rope_theta": 100.0, "rope_scaling": {"type": "linear", "factor": 4.0}}
    np.testing.assert_array_equal(read_frequencies(config, 16, 1.0).radians, plain(100.0, 16) / np.float32(4.0))


def test_llama3_keeps_fast_pairs_stretches_slow_ones_and_blends_between():
    radians = read_frequencies(BASE | {"rope_parameters": LLAMA3 | {"rope_theta": 10000.0}}, 16, 1.0).radians
    before = plain(10000.0, 16)
    waves = 2 * math.pi / before
    fast, slow = waves < 64 / 4, waves > 64
    np.testing.assert_array_equal(radians[fast], before[fast])
    np.testing.assert_array_equal(radians[slow], before[slow] / np.float32(8))
    between = ~fast & ~slow
    assert between.any()
    assert (radians[between] < before[between]).all()
    assert (radians[between] > before[between] / 8).all()


def test_yarn_keeps_the_fastest_pair_and_stretches_the_slowest_and_sharpens_scores():
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
    found = read_frequencies(BASE | {"rope_parameters": yarn | {"rope_theta": 10000.0}}, 64, 1.0)
    before = plain(10000.0, 64)
    assert found.radians[0] == before[0]
    assert found.radians[-1] == pytest.approx(before[-1] / 4, rel=1e-6)
    assert found.scale == pytest.approx(0.1 * math.log(4.0) + 1.0)


def test_dynamic_scaling_raises_the_base_with_the_length_of_a_text_beyond_the_trained_one():
    dynamic = {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 100.0}
    found = read_frequencies(BASE | {"rope_parameters": dynamic}, 16, 1.0)
    np.testing.assert_array_equal(found.radians, plain(100.0, 16))
    assert (found.longer.limit, found.longer.steady) == (4096, False)
    for tokens in (4097, 8192):
        base = 100.0 * (3.0 * tokens / 4096 - 2.0) ** (16 / 14)
        np.testing.assert_allclose(found.longer.radians(tokens), plain(base, 16), rtol=1e-6)


def longrope(**changes):
    lists = {"short_factor": [1.0, 2.0], "long_factor": [4.0, 8.0]}
    settings = {"rope_type": "longrope", "rope_theta": 100.0, "original_max_position_embeddings": 1024, **lists}
    return BASE | {"rope_parameters": settings | changes}


def test_longrope_divides_each_pair_by_the_set_of_short_or_of_long_texts_and_sharpens_scores():
    found = read_frequencies(longrope(), 4, 1.0)
    np.testing.assert_allclose(found.radians, [1.0, 0.05], rtol=1e-7)
    np.testing.assert_allclose(found.longer.radians(9000), [0.25, 0.0125], rtol=1e-7)
    assert (found.longer.limit, found.longer.steady) == (1024, True)
    assert found.scale == pytest.approx(math.sqrt(1 + math.log(4) / math.log(1024)))
    assert read_frequencies(longrope(attention_factor=1.5), 4, 1.0).scale == 1.5
    assert read_frequencies(longrope(factor=0.5), 4, 1.0).scale == 1.0
    beside = longrope() | {"original_max_position_embeddings": 2048}
    assert read_frequencies(beside, 4, 1.0).longer.limit == 2048


@pytest.mark.parametrize("broken", [None, [1.0], [1.0, "2"], 2.0])
def test_longrope_without_a_number_for_every_pair_is_refused(broken):
    with pytest.raises(CheckpointError, match="list of 2 numbers") as caught:
        read_frequencies(longrope(long_factor=broken), 4, 1.0)
    assert caught.value.param == "config.json: rope_parameters.long_factor"


def test_an_unknown_scaling_is_refused():
    with pytest.raises(CheckpointError, match="mrope") as caught:
        read_frequencies(BASE | {"rope_parameters": {"rope_type": "mrope", "factor": 2.0}}, 16, 1.0)
    assert caught.value.param == "config.json: rope_parameters"


def test_a_missing_factor_is_named():
    with pytest.raises(CheckpointError, match="'factor'"):
        read_frequencies(BASE | {"rope_parameters": {"rope_type": "linear"}}, 16, 1.0)
