"""Buckets and slopes of relative positions."""

from __future__ import annotations

import numpy as np
import pytest

from infinity_emb.models.graph.deberta_v2 import log_buckets
from infinity_emb.models.graph.relative import alibi_slopes, t5_buckets


def test_t5_buckets_are_exact_near_logarithmic_far_and_one_half_a_side():
    back = np.array([0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128])
    expected = [0, 1, 7, 8, 9, 10, 11, 12, 13, 14, 15, 15]
    assert t5_buckets(back, 32, 128).tolist() == expected
    assert t5_buckets(-back[1:], 32, 128).tolist() == [16 + each for each in expected[1:]]


def test_all_t5_buckets_are_used():
    assert set(t5_buckets(np.arange(-128, 129), 32, 128)) == set(range(32)) - {16}


def test_log_buckets_are_exact_up_to_half_antisymmetric_and_never_fall():
    back = np.arange(-600, 601)
    buckets = log_buckets(back, 256, 512)
    near = np.abs(back) <= 128
    assert (buckets[near] == back[near]).all()
    assert (buckets == -buckets[::-1]).all()
    assert (np.diff(buckets) >= 0).all()
    assert log_buckets(np.array([511]), 256, 512) == 255


@pytest.mark.parametrize(
    ("heads", "slopes"),
    [
        (8, [2**-each for each in range(1, 9)]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
    ],
)
def test_alibi_slopes_are_the_published_series(heads, slopes):
    np.testing.assert_allclose(alibi_slopes(heads), slopes)
