from __future__ import annotations

import numpy as np
import pytest

from infinity_emb.models.graph.stretch import cubic_taps
from infinity_emb.models.graph.swin import relative_index, window_order, window_regions


def test_windows_are_squares_of_the_grid():
    order = window_order(4, 2, 0)
    assert order[:4].tolist() == [0, 1, 4, 5]
    assert sorted(order) == list(range(16))


def test_a_shifted_grid_wraps_around():
    order = window_order(4, 2, 1)
    assert order[:4].tolist() == [5, 6, 9, 10]
    assert order[-4:].tolist() == [15, 12, 3, 0]


def test_only_the_last_windows_hold_tokens_from_several_regions():
    regions = window_regions(8, 4, 2)
    assert len(set(regions[0])) == 1
    assert len(set(regions[-1])) == 4


def test_pairs_at_the_same_offset_share_a_bias():
    index = relative_index(3)
    assert index[0, 1] == index[1, 2] == index[7, 8]
    assert len(np.unique(index)) == 25
    assert index.max() == 24


@pytest.mark.parametrize(("size", "target"), [(61, 64), (1001, 1024), (2, 9)])
def test_stretching_keeps_the_ends_and_nearly_a_straight_line(size, target):
    index, weights = cubic_taps(size, target)
    line = np.arange(size, dtype=np.float64)
    stretched = (line[index] * weights).sum(axis=0)
    np.testing.assert_allclose(weights.sum(axis=0), 1, atol=1e-5)
    assert stretched[0] == pytest.approx(0, abs=1e-6)
    assert stretched[-1] == pytest.approx(size - 1, abs=1e-3)
    # torch's kernel is sharper than the one that would keep lines straight
    np.testing.assert_allclose(stretched, np.linspace(0, size - 1, target), atol=0.1)
