"""Encodings of a fixed size: their dot product ranks as MaxSim does, and they never change."""

from __future__ import annotations

import numpy as np

from infinity_emb.engine.late import score_late
from infinity_emb.engine.muvera import CELLS, DIM, PROJECTED, encode_fixed


def matrix(count, seed, width=32):
    rows = np.random.default_rng(seed).normal(size=(count, width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_dot_products_rank_as_maxsim_does():
    query = matrix(16, 0)
    noise = [matrix(40, seed) for seed in range(1, 30)]
    shares = np.linspace(0, 1, len(noise))
    documents = [
        np.concatenate([query[: round(16 * share)], other]) for share, other in zip(shares, noise, strict=True)
    ]
    exact = score_late(query, documents, mean=False)
    asked = encode_fixed(query, is_query=True)
    near = np.array([asked @ encode_fixed(document, is_query=False) for document in documents])
    assert np.corrcoef(exact, near)[0, 1] > 0.95
    assert near.argmax() in exact.argsort()[-3:]


def test_a_query_adds_up_and_a_document_averages_and_fills_empty_cells():
    (vector,) = matrix(1, 3)
    twice = np.stack([vector, vector])
    assert encode_fixed(twice, is_query=True).shape == (DIM,)
    np.testing.assert_allclose(
        encode_fixed(twice, is_query=True), 2 * encode_fixed(vector[None], is_query=True), atol=1e-5
    )
    once = encode_fixed(vector[None], is_query=False)
    np.testing.assert_allclose(encode_fixed(twice, is_query=False), once, atol=1e-5)
    cells = once.reshape(-1, CELLS, PROJECTED)
    np.testing.assert_allclose(cells, np.broadcast_to(cells[:, :1], cells.shape), atol=1e-5)


def test_the_encoding_of_a_matrix_never_changes():
    ones = np.eye(4, 8, dtype=np.float32)
    found = encode_fixed(ones, is_query=True)
    assert (encode_fixed(np.empty((0, 8), np.float32), is_query=True) == 0).all()
    assert round(float(np.abs(found).sum()), 1) == FROZEN_SUM


FROZEN_SUM = 292.5
