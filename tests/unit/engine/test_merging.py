"""Merging vectors: how many are left, which are spared, and the order."""

from __future__ import annotations

import numpy as np
import pytest

from infinity_emb.engine.late import score_late
from infinity_emb.engine.merging import merge_vectors


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def vectors(count, seed=0):
    return unit(np.random.default_rng(seed).normal(size=(count, 8)))


@pytest.mark.parametrize(
    ("count", "factor", "left"), [(21, 2.0, 11), (21, 4.0, 6), (4, 10.0, 2), (1, 2.0, 1), (21, 1.5, 14)]
)
def test_about_one_of_factor_vectors_is_left_and_the_first_is_spared(count, factor, left):
    given = vectors(count)
    merged = merge_vectors(given, factor, 1, unit=True)
    assert merged.shape == (left, 8)
    np.testing.assert_allclose(merged[0], given[0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(merged, axis=1), 1, atol=1e-6)


def test_near_vectors_are_merged_into_their_mean():
    far = np.eye(8, dtype=np.float32)[:3]
    given = unit(np.concatenate([far, far + 0.01]))
    merged = merge_vectors(given, 2.0, 0, unit=False)
    wanted = (given[:3] + given[3:]) / 2
    distances = np.linalg.norm(merged[:, None] - wanted[None], axis=2)
    assert sorted(distances.argmin(axis=1)) == [0, 1, 2]
    np.testing.assert_allclose(distances.min(axis=1), 0, atol=1e-6)


def test_maxsim_sums_the_best_match_of_each_vector_of_the_query():
    query, documents = vectors(3), [vectors(5, 1), vectors(2, 2), np.empty((0, 8), np.float32)]
    wanted = [sum(max(float(q @ d) for d in document) for q in query) for document in documents[:2]]
    np.testing.assert_allclose(score_late(query, documents, mean=False), [*wanted, 0], atol=1e-6)
    np.testing.assert_allclose(score_late(query, documents, mean=True), [*(w / 3 for w in wanted), 0], atol=1e-6)
    assert (score_late(np.empty((0, 8), np.float32), documents, mean=True) == 0).all()
