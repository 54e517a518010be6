"""int8, uint8 and one-bit vectors: documented ranges, nothing depends on the rest of the request."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from infinity_emb.errors import InvalidInputError
from infinity_emb.models.quantize import quantize
from infinity_emb.types import EmbeddingDtype


def unit_vectors(count=50, dim=384, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, dim)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def cosines(first, second):
    first, second = first.astype(np.float64), second.astype(np.float64)
    return (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)


def test_float32_is_left_as_it_is():
    vectors = unit_vectors()
    assert quantize(vectors, EmbeddingDtype.FLOAT32) is vectors


@pytest.mark.parametrize("dim", [8, 64, 384, 1024])
def test_int8_keeps_the_direction(dim):
    vectors = unit_vectors(dim=dim)
    levels = quantize(vectors, EmbeddingDtype.INT8)
    assert levels.dtype == np.int8
    assert levels.min() >= -127
    assert cosines(levels, vectors).min() >= 0.98


def test_uint8_is_int8_moved_by_128():
    vectors = unit_vectors()
    moved = quantize(vectors, EmbeddingDtype.UINT8)
    assert moved.dtype == np.uint8
    np.testing.assert_array_equal(moved.astype(int) - 128, quantize(vectors, EmbeddingDtype.INT8))


def test_a_zero_is_a_zero_and_the_length_of_the_vector_does_not_matter():
    vectors = unit_vectors()
    vectors[:, 0] = 0.0
    for factor in (0.01, 1.0, 300.0):
        levels = quantize((vectors * np.float32(factor)).astype(np.float32), EmbeddingDtype.INT8).astype(int)
        assert not levels[:, 0].any()
        assert np.abs(levels - quantize(vectors, EmbeddingDtype.INT8)).max() <= 1  # rounding of the factor


def test_outliers_saturate_instead_of_wrapping_round():
    vector = np.zeros((1, 384), np.float32)
    vector[0, :2] = 1.0, -1.0
    assert quantize(vector, EmbeddingDtype.INT8)[0, :3].tolist() == [127, -127, 0]
    assert quantize(vector, EmbeddingDtype.UINT8)[0, :3].tolist() == [255, 1, 128]


def test_bits_are_the_signs_first_dimension_in_the_highest_bit():
    vector = np.array([[1.0, -1.0, 2.0, 0.0, -3.0, 4.0, 5.0, -6.0]], np.float32)
    assert quantize(vector, EmbeddingDtype.UBINARY).tolist() == [[0b10100110]]
    assert quantize(vector, EmbeddingDtype.BINARY).tolist() == [[0b10100110 - 128]]


def test_binary_is_ubinary_minus_128_and_hamming_distances_agree():
    vectors = unit_vectors()
    unsigned, signed = (quantize(vectors, dtype) for dtype in (EmbeddingDtype.UBINARY, EmbeddingDtype.BINARY))
    assert (unsigned.dtype, signed.dtype) == (np.uint8, np.int8)
    assert unsigned.shape == signed.shape == (50, 48)
    np.testing.assert_array_equal(signed.astype(int), unsigned.astype(int) - 128)
    distance = np.unpackbits(unsigned[0] ^ unsigned[1]).sum()
    assert distance == np.unpackbits(signed[:1].view(np.uint8) ^ signed[1:2].view(np.uint8)).sum()


@pytest.mark.parametrize("dtype", [EmbeddingDtype.BINARY, EmbeddingDtype.UBINARY])
def test_bits_need_a_multiple_of_eight_dimensions(dtype):
    with pytest.raises(InvalidInputError, match="divided by 8") as caught:
        quantize(unit_vectors(dim=100), dtype)
    assert caught.value.param == "dimensions"


@given(
    arrays(np.float32, (3, 16), elements=st.floats(-1e6, 1e6, width=32)),
    st.sampled_from(EmbeddingDtype),
)
def test_a_vector_is_the_same_alone_and_in_company(vectors, dtype):
    together = quantize(vectors, dtype)
    for row in range(len(vectors)):
        np.testing.assert_array_equal(together[row], quantize(vectors[row : row + 1], dtype)[0])


@given(arrays(np.float32, (2, 16), elements=st.floats(-1e6, 1e6, width=32)))
def test_no_vector_gives_a_warning_or_a_level_out_of_range(vectors):
    levels = quantize(vectors, EmbeddingDtype.INT8)
    assert levels.min() >= -127
