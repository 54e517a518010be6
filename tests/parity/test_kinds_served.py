"""A language model that reranks, from the folder to the relevance, self-check included."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import tiny_kinds
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.types import ScoreOptions

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]


@pytest.mark.parametrize(
    ("name", "family", "tied"), [("Qwen3-Reranker-0.6B", "qwen3", True), ("mxbai-rerank-base-v2", "qwen2", False)]
)
def test_a_judge_ranks_through_the_engine_and_passes_the_self_check(name, family, tied, tmp_path):
    folder = tiny_kinds.language_model(tmp_path / name, family, tie_word_embeddings=tied, max_position_embeddings=1000)

    async def main():
        args = EngineArgs(model_name_or_path=str(folder), engine="openvino", dtype="float32", device="cpu")
        async with AsyncEmbeddingEngine.from_args(args) as engine:
            raw = await engine.rerank_result(
                "tea ?", ["tea is hot", "peru", "tea " * 500], ScoreOptions(raw_scores=True)
            )
            return engine.card, raw, await engine.rerank_result("tea ?", ["tea is hot", "peru"])

    card, raw, scores = asyncio.run(main())
    assert card.extra["fidelity_min_cosine"] > 0.9999
    assert raw.usage.truncated == (2,)
    np.testing.assert_allclose(scores.scores, 1 / (1 + np.exp(-raw.scores[:2])), atol=1e-6)
