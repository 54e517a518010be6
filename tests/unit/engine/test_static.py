"""Static embeddings through the engine: which backend computes them, and what a text without tokens gets."""

from __future__ import annotations

import numpy as np
import pytest

import tiny_static
from infinity_emb import InfinityPipeline
from infinity_emb.engine import loader
from infinity_emb.errors import ConfigurationError
from infinity_emb.types import InferenceEngine


@pytest.fixture
def folder(tmp_path):
    return tiny_static.static(tmp_path / "model")


def test_auto_takes_openvino_where_it_would_take_torch(folder, monkeypatch):
    monkeypatch.setattr(loader, "choose_engine", lambda *_: InferenceEngine.TORCH)
    with InfinityPipeline(str(folder), threads=1) as pipeline:
        assert pipeline.card.backend == "openvino"


@pytest.mark.parametrize("engine", ["openvino", "onnxruntime"])
def test_a_text_without_tokens_gets_the_vector_zero_beside_others(engine, folder):
    pytest.importorskip(engine)
    with InfinityPipeline(str(folder), engine=engine, threads=1) as pipeline:
        vectors = pipeline.encode(["tea", "", "coffee", "  "])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1, 0], atol=1e-6)


def test_torch_refuses_it_by_name(folder):
    pytest.importorskip("torch")
    with pytest.raises(ConfigurationError, match="static embeddings"):
        InfinityPipeline(str(folder), engine="torch", device="cpu")
