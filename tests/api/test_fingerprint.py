"""Every answer with vectors says what made them; `/models` and `/metrics` say how near they are to the reference."""

from __future__ import annotations

import pytest

FINGERPRINT = "0123456789abcdef"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embeddings", {"input": ["x"]}),
        ("/v1/embeddings", {"input": ["x"]}),
        ("/v1/embeddings", {"input": ["x"], "encoding_format": "base64"}),
        ("/v2/embed", {"texts": ["x"], "model": "fake/model"}),
        ("/embed", {"inputs": ["x"]}),
    ],
)
def test_answers_with_vectors_carry_the_fingerprint(path, body, served):
    answer = served.post(path, body)
    assert answer.status_code == 200
    assert answer.headers["x-model-fingerprint"] == FINGERPRINT


def test_other_answers_do_not(served):
    assert "x-model-fingerprint" not in served.get("/models").headers
    assert "x-model-fingerprint" not in served.post("/v1/embeddings", {"input": []}).headers


def test_the_list_of_models_shows_fingerprint_and_figures(served):
    (entry,) = served.get("/models").json()["data"]
    assert entry["fingerprint"] == FINGERPRINT
    assert entry["details"]["fidelity_min_cosine"] == 0.99995


def test_figures_of_the_self_check_are_gauges(served):
    text = served.get("/metrics").text
    assert 'infinity_fidelity_min_cosine{model="fake/model"} 0.99995' in text
    assert 'infinity_fidelity_max_abs_error{model="fake/model"}' not in text  # this double was not asked for it
