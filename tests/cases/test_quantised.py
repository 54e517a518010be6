"""Cases about smaller number formats of vectors."""

from __future__ import annotations

import numpy as np
import pytest

from cases.served import Served, cosines, message_of
from texts import sample

DIM = 32


def packed_bits(values: np.ndarray) -> np.ndarray:
    return np.unpackbits(values.astype(np.uint8), axis=1)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "binary", "ubinary"])
def test_b073_a_small_vector_does_not_depend_on_the_rest_of_the_request(embedder, dtype):
    alone, together = (embedder.embed(texts, embedding_dtype=dtype) for texts in (["x"], ["x", "y", "z" * 40]))
    np.testing.assert_array_equal(alone[0], together[0])
    assert len(set(alone[0].tolist())) > 1


@pytest.mark.parametrize(("dtype", "offset"), [("int8", 0), ("uint8", 128)])
def test_b073_integers_keep_the_direction(embedder, dtype, offset):
    texts = sample(60)
    integers = embedder.embed(texts, embedding_dtype=dtype)
    assert np.array_equal(integers, np.rint(integers))
    assert integers.min() >= offset - 128
    assert integers.max() <= offset + 127
    assert cosines(integers - offset, embedder.embed(texts)).min() >= 0.98


@pytest.mark.parametrize("dtype", ["int8", "ubinary"])
def test_b073_the_format_can_be_set_for_the_whole_server(folders, start, embedder, dtype):
    server = Served(start(folders["embed"], embedding_dtype=dtype))
    np.testing.assert_array_equal(server.embed("x"), embedder.embed("x", embedding_dtype=dtype))
    np.testing.assert_allclose(server.embed("x", embedding_dtype="float32"), embedder.embed("x"), atol=1e-6)


def test_b075_binary_is_ubinary_less_128(embedder):
    texts = sample(60)
    signed, unsigned = (embedder.embed(texts, embedding_dtype=dtype) for dtype in ("binary", "ubinary"))
    assert signed.shape == unsigned.shape == (60, DIM // 8)
    assert unsigned.min() >= 0
    assert unsigned.max() <= 255
    assert signed.min() >= -128
    assert signed.max() <= 127
    np.testing.assert_array_equal(signed, unsigned - 128)
    np.testing.assert_array_equal(packed_bits(unsigned), embedder.embed(texts) > 0)


def test_b075_both_forms_give_the_same_hamming_distances(embedder):
    texts = sample(20)
    signed = packed_bits(embedder.embed(texts, embedding_dtype="binary").astype(np.int16) + 128)
    unsigned = packed_bits(embedder.embed(texts, embedding_dtype="ubinary"))
    np.testing.assert_array_equal((signed[:, None] != signed).sum(-1), (unsigned[:, None] != unsigned).sum(-1))


def test_b075_dimensions_that_do_not_fill_bytes_are_refused(embedder):
    assert "8" in message_of(embedder.post("/v1/embeddings", input="x", dimensions=12, embedding_dtype="binary"))
    assert embedder.embed("x", dimensions=16, embedding_dtype="binary").shape == (1, 2)
