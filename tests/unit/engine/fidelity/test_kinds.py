"""Sparse encoders and late interaction models pass the self-check, and are not served when they are broken."""

from __future__ import annotations

import numpy as np
import pytest

import tiny_kinds
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.engine.fidelity.rows import SAMPLED_TOKENS, rows_of, sampled
from infinity_emb.errors import LoadError
from infinity_emb.models.graph import heads, words
from infinity_emb.types import Task

LATE = {
    "own": ("bert", {"modules": {"MultiVectorMask": {"skiplist_words": ["."]}}}),
    "filled": (
        "bert",
        {"options": {"query_expansion": {"strategy": "fixed", "attend": False, "length": 24}}},
    ),
    "pylate": ("modernbert", {"layout": "pylate"}),
    "stanford": ("bert", {"layout": "stanford"}),
}


def card_of(folder, tmp_path):
    args = EngineArgs(
        model_name_or_path=str(folder), engine="openvino", cache_folder=str(tmp_path / "cache"), threads=1
    )
    model = AsyncEmbeddingEngine.from_args(args)
    model.close()
    return model.card


@pytest.mark.parametrize("name", LATE)
def test_token_vectors_equal_numpy(name, tmp_path):
    pytest.importorskip("torch")
    family, options = LATE[name]
    card = card_of(tiny_kinds.late_model(tmp_path / "model", family, **options), tmp_path)
    assert card.extra["fidelity_min_cosine"] > 0.99999999
    assert card.extra["fidelity_reference"].endswith("then NumPy")


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_weights_of_words_are_the_same_together_and_alone(family, tmp_path):
    pytest.importorskip("torch")
    card = card_of(tiny_kinds.splade(tmp_path / "model", family), tmp_path)
    assert card.extra["fidelity_min_cosine"] > 0.99999999
    assert card.extra["fidelity_top10_agreement"] == 1.0


def test_token_vectors_without_their_projection_are_not_served(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    folder = tiny_kinds.late_model(tmp_path / "model", "bert")
    real = heads._dense
    monkeypatch.setattr(heads, "_dense", lambda *given: given[0].node("Abs", [real(*given)]))
    with pytest.raises(LoadError, match="gives wrong results here"):
        card_of(folder, tmp_path)


def test_weights_that_depend_on_padding_are_not_served(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    folder = tiny_kinds.splade(tmp_path / "model", "bert")
    real = words.sparse_weights

    def unmasked(builder, *given):
        builder.input("segment_ids")
        made = real(builder, *given)["sparse"]
        wide = builder.node("Shape", ["segment_ids"], start=1, end=2)
        return {"sparse": (builder.node("Mul", [made[0], builder.node("Cast", [wide], to=1)]), made[1])}

    monkeypatch.setattr("infinity_emb.models.graph.build.sparse_weights", unmasked)
    with pytest.raises(LoadError, match="gives wrong results here"):
        card_of(folder, tmp_path)


def test_a_sparse_result_becomes_one_row():
    outputs = {"sparse": [np.array([0.5, 2.0])], "sparse_index": [np.array([1, 3])]}
    assert rows_of(Task.SPARSE, outputs, 0, 5).tolist() == [[0, 0.5, 0, 2, 0]]


def test_of_many_token_vectors_the_first_the_last_and_some_between_are_compared():
    kept = sampled(np.arange(100)[:, None])[:, 0]
    assert (kept[0], kept[-1], len(set(kept))) == (0, 99, SAMPLED_TOKENS)
    assert sampled(np.arange(3)[:, None])[:, 0].tolist() == [0, 1, 2]
