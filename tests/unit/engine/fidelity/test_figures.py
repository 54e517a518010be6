"""Figures say how far results are from right ones, and only near ones pass."""

from __future__ import annotations

import numpy as np
import pytest

from infinity_emb.engine.fidelity.figures import compare_scores, compare_vectors, worst

BAR = 0.9999


def vectors(count=20, dim=16, seed=0):
    made = np.random.default_rng(seed).normal(size=(count, dim))
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def figures(found, wanted):
    return compare_vectors(np.asarray(found, np.float32), wanted, "a reference")


def test_equal_vectors_pass_whatever_the_bar():
    found = figures(vectors(), vectors())
    assert found.max_abs_error < 1e-7
    assert found.min_cosine == pytest.approx(1.0, abs=1e-9)
    assert found.top_agreement == 1.0
    assert found.passes(0.9999999)


def test_the_worst_vector_counts_not_the_mean():
    wrong = vectors()
    wrong[7] = wrong[8]
    found = figures(wrong, vectors())
    assert found.min_cosine == pytest.approx(float(vectors()[7] @ vectors()[8]), abs=1e-6)
    assert not found.passes(BAR)


def test_errors_are_the_true_ones():
    wrong = vectors()
    wrong[3, 5] += 0.25
    assert figures(wrong, vectors()).max_abs_error == pytest.approx(0.25, abs=1e-6)


def test_a_wrong_length_fails_though_the_direction_is_right():
    found = figures(2 * vectors(), vectors())
    assert found.min_cosine > BAR
    assert found.max_relative_error == pytest.approx(1.0)
    assert not found.passes(BAR)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite_never_pass(value):
    wrong = vectors()
    wrong[0, 0] = value
    with np.errstate(invalid="ignore"):
        found = figures(wrong, vectors())
    assert not found.passes(0.0001)
    assert not worst([found, figures(vectors(), vectors())]).passes(0.0001)
    assert not worst([figures(vectors(), vectors()), found]).passes(0.0001)


def test_agreement_counts_neighbours_and_forgives_ties():
    wanted = vectors(40)
    assert figures(vectors(40, seed=1), wanted).top_agreement < 0.6
    twins = np.repeat(vectors(12), 2, axis=0)
    assert figures(twins[::-1][::-1] + 1e-9, twins).top_agreement == 1.0


def test_scores_are_compared_as_a_share_of_the_largest():
    wanted = np.linspace(-8, 8, 16)[:, None]
    found = compare_scores((wanted + 0.05).astype(np.float32), wanted, "a reference")
    assert found.max_abs_error == pytest.approx(0.05, abs=1e-6)
    assert found.passes(BAR)
    assert not compare_scores((wanted + 0.5).astype(np.float32), wanted, "a reference").passes(BAR)
    assert not compare_scores(-wanted.astype(np.float32), wanted, "a reference").passes(BAR)


def test_the_worst_of_two_comparisons_is_kept_number_by_number():
    near, far = figures(vectors() + 1e-6, vectors()), figures(vectors() + 1e-2, vectors())
    both = worst([near, far])
    assert (both.max_abs_error, both.min_cosine) == (far.max_abs_error, far.min_cosine)
    assert "min cosine" in str(both)
