"""A model with adapters over HTTP: Jina's `task` chooses one, alone or beside others, cached or not."""

from __future__ import annotations

import numpy as np
import pytest

import tiny_adapters
from cases.served import Served
from infinity_emb import AsyncEmbeddingEngine, EngineArgs

TEXTS = ["tea is hot", "lima is the capital of peru", "sun"]


@pytest.fixture(scope="module", params=[0, 4], ids=["not cached", "cached"])
def served(request, tmp_path_factory):
    folder = tiny_adapters.jina_v3(tmp_path_factory.mktemp("adapters"))
    args = EngineArgs(
        model_name_or_path=str(folder),
        engine="openvino",
        threads=1,
        dtype="float32",
        vector_cache_mb=request.param,
        cache_folder=str(tmp_path_factory.mktemp("cache")),
    )
    engine = AsyncEmbeddingEngine.from_args(args)
    engine.start()
    yield Served(engine), engine
    engine.stop(grace_s=0.0)


def test_every_task_gives_vectors_of_its_own_and_names_of_other_apis_mean_the_same(served):
    application, engine = served
    assert engine.card.extra["fidelity_min_cosine"] > 0.9999
    assert engine.card.extra["adapters"] == ", ".join(tiny_adapters.TASKS)
    found = {task: application.embed(TEXTS, task=task) for task in tiny_adapters.TASKS}
    found[""] = application.embed(TEXTS)
    names = list(found)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            assert abs(found[first] - found[second]).max() > 0.01, (first, second)
    for task, fields in (
        ("retrieval.query", {"input_type": "query"}),
        ("retrieval.passage", {"input_type": "search_document"}),
        ("separation", {"input_type": "clustering"}),
        ("text-matching", {"prompt_name": "text-matching"}),
    ):
        np.testing.assert_allclose(application.embed(TEXTS, **fields), found[task], atol=1e-6)
    cut = application.embed(TEXTS, task="separation", dimensions=8)
    kept = found["separation"][:, :8]
    np.testing.assert_allclose(cut, kept / np.linalg.norm(kept, axis=1, keepdims=True), atol=1e-6)


def test_an_unknown_task_is_refused_and_not_answered_without_an_adapter(served):
    answer = served[0].post("/v1/embeddings", input=TEXTS, task="nearest")
    assert answer.status_code == 422
    for task in tiny_adapters.TASKS:
        assert task in answer.text
