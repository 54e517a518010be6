"""Every kind of model passes the self-check as it is, and is not served when something in its way is broken."""

from __future__ import annotations

import logging
import re

import numpy as np
import pytest

import tiny
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.errors import LoadError
from infinity_emb.models.graph import heads
from infinity_emb.models.spec.model import PoolingMode
from infinity_emb.scheduler.collate import Collator
from infinity_emb.types import Dtype, Task

EMBEDDERS = {
    "mean": {},
    "cls": {"pooling": "cls"},
    "last token": {"pooling": "lasttoken", "normalize": False},
    "all": {"pooling": ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"), "normalize": False},
    "dense": {"dense": 16},
    "prompt left out": {"prompts": {"q": "search the : "}, "default_prompt_name": "q", "include_prompt": False},
    "bfloat16 weights": {"dtype": "bfloat16"},
    "plain": {"modules": False},
}


def loaded(folder, cache, engine="openvino", **options):
    args = EngineArgs(model_name_or_path=str(folder), engine=engine, cache_folder=str(cache), threads=1, **options)
    model = AsyncEmbeddingEngine.from_args(args)
    model.close()
    return model.card


def passes(card, most):
    assert card.extra["fidelity_min_cosine"] > 0.99999999
    assert 0 < card.extra["fidelity_max_abs_error"] < most
    assert card.extra["fidelity_top10_agreement"] == 1.0
    assert card.extra["fidelity_reference"].startswith("openvino float32")


@pytest.mark.parametrize("name", EMBEDDERS)
def test_every_kind_of_pooling_equals_numpy(name, tmp_path):
    passes(loaded(tiny.tiny_bert(tmp_path / "model", **EMBEDDERS[name]), tmp_path / "cache"), 1e-5)


@pytest.mark.parametrize("kind", sorted(tiny.ARCHITECTURES))
def test_every_family_of_embedders_passes(kind, tmp_path):
    passes(loaded(tiny.tiny(kind, tmp_path / "model"), tmp_path / "cache"), 1e-5)


@pytest.mark.parametrize(
    "kind", ["bert", "roberta", "xlm_roberta", "distilbert", "electra", "modernbert", "deberta_v2"]
)
@pytest.mark.parametrize("labels", [("yes",), ("a", "b", "c")])
def test_every_family_of_scorers_passes(kind, labels, tmp_path):
    card = loaded(tiny.tiny(kind, tmp_path / "model", labels=labels), tmp_path / "cache")
    assert card.tasks <= {Task.RERANK, Task.CLASSIFY}
    passes(card, 1e-4)


def test_onnxruntime_is_checked_against_openvino(tmp_path):
    pytest.importorskip("onnxruntime")
    passes(loaded(tiny.tiny_bert(tmp_path / "model"), tmp_path / "cache", engine="onnxruntime"), 1e-5)


def test_the_real_model_passes_and_auto_is_float32_here(minilm_folder, tmp_path):
    card = loaded(minilm_folder, tmp_path)
    passes(card, 2e-6)
    if "BF16" not in _native():
        assert card.dtype == Dtype.FLOAT32.value


def _native():
    import openvino

    return openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _first_token_for_the_mean(builder, mode, hidden, *rest):
    del mode, rest
    return builder.gather(hidden, builder.input("first_index"))


def test_a_wrong_pooling_is_not_served_and_the_error_told_is_the_true_one(tmp_path, monkeypatch):
    folder = tiny.tiny_bert(tmp_path / "model")
    right = embedded(folder, tmp_path)
    monkeypatch.setattr(heads, "_pool_one", _first_token_for_the_mean)
    with pytest.raises(LoadError, match="gives wrong results here: in float32") as caught:
        loaded(folder, tmp_path / "cache")
    told = float(re.search(r"min cosine (-?[\d.]+)", caught.value.message).group(1))
    wrong = embedded(folder, tmp_path)
    assert told == pytest.approx(float((right * wrong).sum(axis=1).min()), abs=1e-4)
    assert told < 0.99


def embedded(folder, cache):
    """Vectors of the probes, without a check."""
    from infinity_emb.engine.fidelity.probes import PROBES

    args = EngineArgs(model_name_or_path=str(folder), engine="openvino", cache_folder=str(cache), threads=1, fidelity=0)
    engine = AsyncEmbeddingEngine.from_args(args)
    engine.start()
    try:
        import asyncio

        vectors, _ = asyncio.run(engine.embed(sentences=list(PROBES)))
    finally:
        engine.close()
    return np.stack(vectors)


def _no_bias(linear):
    def without(builder, value, name, shape=None, *, bias=True):
        return linear(builder, value, name, shape, bias=bias and "classifier" not in name)

    return without


def _swapped(call):
    """A collator that mixes two texts of a batch up."""

    def swapped(self, batch):
        arrays = call(self, batch)
        weights = arrays.get("pool_weights")
        if weights is not None and len(batch.entries) > 1:
            arrays["pool_weights"] = weights[[1, 0, *range(2, len(weights))]]
        return arrays

    return swapped


def test_texts_mixed_up_in_a_batch_are_not_served(tmp_path, monkeypatch):
    monkeypatch.setattr(Collator, "__call__", _swapped(Collator.__call__))
    with pytest.raises(LoadError, match="gives wrong results"):
        loaded(tiny.tiny_bert(tmp_path / "model"), tmp_path / "cache")


def test_a_head_that_is_wrong_is_not_served(tmp_path, monkeypatch):
    from infinity_emb.models.graph.builder import GraphBuilder

    monkeypatch.setattr(GraphBuilder, "linear", _no_bias(GraphBuilder.linear))
    with pytest.raises(LoadError, match="gives wrong results"):
        loaded(tiny.tiny_bert(tmp_path / "model", labels=("yes",)), tmp_path / "cache")


def test_without_the_check_it_is_served_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(heads, "_pool_one", _first_token_for_the_mean)
    card = loaded(tiny.tiny_bert(tmp_path / "model"), tmp_path / "cache", fidelity=0)
    assert not any(name.startswith("fidelity") for name in card.extra)


def test_the_result_is_logged_and_kept(tmp_path, caplog, monkeypatch):
    folder = tiny.tiny_bert(tmp_path / "model")
    with caplog.at_level(logging.INFO, "infinity_emb"):
        first = loaded(folder, tmp_path / "cache")
    assert "is computed in float32; self-check: min cosine 1.0000000" in caplog.text
    monkeypatch.setattr("infinity_emb.engine.fidelity.check.measure", None)
    second = loaded(folder, tmp_path / "cache")
    facts = [{key: value for key, value in card.extra.items() if key != "load_s"} for card in (first, second)]
    assert facts[0] == facts[1]


def test_other_weights_are_checked_again(tmp_path, monkeypatch):
    loaded(tiny.tiny_bert(tmp_path / "one"), tmp_path / "cache")
    monkeypatch.setattr("infinity_emb.engine.fidelity.check.measure", lambda *_: 1 / 0)
    loaded(tiny.tiny_bert(tmp_path / "copy"), tmp_path / "cache")
    with pytest.raises(ZeroDivisionError):
        loaded(tiny.tiny_bert(tmp_path / "two", seed=5), tmp_path / "cache")


def test_a_cache_that_cannot_be_written_does_not_stop_the_start(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    passes(loaded(tiny.tiny_bert(tmp_path / "model"), tmp_path / "cache"), 1e-5)


def test_the_dummy_is_not_checked():
    card = AsyncEmbeddingEngine.from_args(EngineArgs(engine="dummy")).card
    assert not any(name.startswith("fidelity") for name in card.extra)
    assert card.extra["fingerprint"]


def test_a_model_too_large_for_a_second_copy_is_served_unchecked(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("infinity_emb.engine.fidelity.reference.MEMORY_SHARE", 0.0)
    card = loaded(tiny.tiny_bert(tmp_path / "model"), tmp_path / "cache")
    assert "fidelity_min_cosine" not in card.extra
    assert "no self-check" in caplog.text


def test_numpy_knows_every_pooling_mode():
    from infinity_emb.engine.fidelity import tail

    states = np.arange(12, dtype=np.float64).reshape(4, 3)
    found = {mode: tail._pool(mode, states, states, 0).tolist() for mode in PoolingMode}
    assert found == {
        PoolingMode.CLS: [0, 1, 2],
        PoolingMode.MAX: [9, 10, 11],
        PoolingMode.MEAN: [4.5, 5.5, 6.5],
        PoolingMode.MEAN_SQRT_LEN: [9, 11, 13],
        PoolingMode.WEIGHTED_MEAN: [6, 7, 8],
        PoolingMode.LAST_TOKEN: [9, 10, 11],
    }
