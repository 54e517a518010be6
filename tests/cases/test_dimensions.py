"""Cases about shorter vectors."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from cases.served import message_of

DIM = 32


@pytest.mark.parametrize("dimensions", [1, 8, 31])
def test_b069_a_shorter_vector_is_the_first_numbers_made_unit_again(embedder, dimensions):
    full, cut = embedder.embed("x")[0], embedder.embed("x", dimensions=dimensions)[0]
    assert cut.shape == (dimensions,)
    assert np.linalg.norm(cut) == pytest.approx(1.0, abs=1e-5)
    np.testing.assert_allclose(cut, full[:dimensions] / np.linalg.norm(full[:dimensions]), atol=1e-6)


def test_b069_base64_of_a_shorter_vector_is_shorter(embedder):
    answer = embedder.post("/v1/embeddings", input="x", dimensions=8, encoding_format="base64")
    assert len(base64.b64decode(answer.json()["data"][0]["embedding"], validate=True)) == 4 * 8


@pytest.mark.parametrize("dimensions", [DIM + 1, -1, 10**20])
def test_b070_a_number_the_model_does_not_have_is_refused_with_the_range(embedder, dimensions):
    message = message_of(embedder.post("/v1/embeddings", input="x", dimensions=dimensions))
    assert f"1..{DIM}" in message or f"between 1 and {DIM}" in message
    assert embedder.embed("x").shape == (1, DIM)


@pytest.mark.parametrize("dimensions", ["many", 1.5, [8], True])
def test_b070_what_is_no_whole_number_is_refused(embedder, dimensions):
    assert "dimensions" in message_of(embedder.post("/v1/embeddings", input="x", dimensions=dimensions))


@pytest.mark.parametrize(
    ("dimensions", "length"), [(DIM, DIM), (1, 1), ("8", 8), (str(DIM), DIM), (None, DIM), (0, DIM)]
)
def test_b070_everything_inside_the_range_null_and_numerals_are_served(embedder, dimensions, length):
    assert embedder.embed("x", dimensions=dimensions).shape == (1, length)  # 0 is Infinity's "all of them"
