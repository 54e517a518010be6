from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from infinity_emb.engine.vectors import activate, check_dimensions, finish_vectors, sigmoid
from infinity_emb.errors import DimensionsError
from infinity_emb.models.dummy import dummy_spec
from infinity_emb.models.spec.model import Activation
from infinity_emb.types import EmbedOptions

SPEC = replace(dummy_spec("m", None), dim=4, hidden_size=4)
RAW = np.array([[3.0, 4.0, 0.0, 12.0], [1.0, 1.0, 1.0, 1.0]], np.float32)
NORM = np.linalg.norm(RAW, axis=1, keepdims=True)
OUTPUTS = {"embedding": RAW / NORM, "norm": NORM}


def test_without_options_the_models_own_vectors_come_back():
    np.testing.assert_array_equal(finish_vectors(OUTPUTS, SPEC, EmbedOptions()), RAW / NORM)


def test_switching_normalisation_off_gives_the_lengths_back():
    np.testing.assert_allclose(finish_vectors(OUTPUTS, SPEC, EmbedOptions(normalize=False)), RAW, rtol=1e-6)


def test_a_slice_of_raw_vectors_is_not_made_unit():
    options = EmbedOptions(normalize=False, dimensions=2)
    np.testing.assert_allclose(finish_vectors(OUTPUTS, SPEC, options), RAW[:, :2], rtol=1e-6)


def test_a_model_without_normalize_is_normalised_when_asked():
    plain = replace(SPEC, modules=SPEC.modules[:1])
    outputs = {"embedding": RAW}
    np.testing.assert_array_equal(finish_vectors(outputs, plain, EmbedOptions()), RAW)
    np.testing.assert_allclose(finish_vectors(outputs, plain, EmbedOptions(normalize=True)), RAW / NORM, rtol=1e-6)


def test_a_zero_vector_stays_zero_instead_of_nan():
    plain = replace(SPEC, modules=SPEC.modules[:1])
    outputs = {"embedding": np.zeros((1, 4), np.float32)}
    assert finish_vectors(outputs, plain, EmbedOptions(normalize=True)).tolist() == [[0.0] * 4]


@pytest.mark.parametrize("dimensions", [None, 0, 1, 4])
def test_allowed_dimensions(dimensions):
    check_dimensions(SPEC, dimensions)


@pytest.mark.parametrize("dimensions", [-1, 5])
def test_dimensions_that_are_not(dimensions):
    with pytest.raises(DimensionsError, match="between 1 and 4"):
        check_dimensions(SPEC, dimensions)


def test_sigmoid_of_huge_logits_does_not_overflow():
    scores = sigmoid(np.array([-1e4, -1.0, 0.0, 1.0, 1e4], np.float32))
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [0.0, 0.26894143, 0.5, 0.7310586, 1.0], rtol=1e-6)


def test_softmax_of_huge_logits_does_not_overflow():
    scores = activate(np.array([[1e4, 1e4, -1e4]], np.float32), Activation.SOFTMAX)
    np.testing.assert_allclose(scores, [[0.5, 0.5, 0.0]])


def test_identity_changes_nothing_and_other_activations_are_a_bug():
    assert activate(RAW, Activation.IDENTITY) is RAW
    other = next(a for a in Activation if a not in (Activation.IDENTITY, Activation.SIGMOID, Activation.SOFTMAX))
    with pytest.raises(ValueError, match="bug"):
        activate(RAW, other)
