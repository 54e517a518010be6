"""What the builder refuses is computed by the repository's own ONNX file, which is said."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import foreign_onnx
import tiny
import tiny_kinds
from forward import compute, features, opened, spec_of
from infinity_emb import InfinityPipeline
from infinity_emb.engine import loader
from infinity_emb.errors import CheckpointError, NotComputedError
from infinity_emb.models.graph import obtain_graph, registry
from infinity_emb.models.hub.checkpoint import Checkpoint

pytest.importorskip("onnx")
ITEMS = [features(length, length) for length in (5, 60, 17, 1, 33)]


@pytest.fixture
def refused(tmp_path):
    """A checkpoint with an activation that no builder knows."""
    folder = tiny.tiny_bert(tmp_path / "model", pooling="cls", normalize=False)
    tiny.edit_json(folder / "config.json", hidden_act="gelu_10")
    return folder


@pytest.fixture
def _no_torch(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)


@pytest.mark.parametrize("backend", ["openvino", "onnxruntime"])
def test_a_field_that_is_not_computed_leaves_it_to_the_repositorys_file(backend, refused, caplog):
    pytest.importorskip(backend)
    table = foreign_onnx.write(refused / "onnx/model.onnx")
    with caplog.at_level(logging.WARNING, "infinity_emb"), opened(backend, spec_of(refused)) as made:
        vectors, graph = compute(made, ITEMS)["embedding"], made.report.graph
    expected = np.stack([foreign_onnx.states(table, item.token_ids)[0] for item in ITEMS])
    np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)
    assert graph == "onnx/model.onnx, because config.json: hidden_act is not computed otherwise"
    assert any("gelu_10" in record.message for record in caplog.records)


@pytest.mark.usefixtures("_no_torch")
def test_without_a_file_the_refusal_stays(refused):
    with pytest.raises(NotComputedError, match="gelu_10"):
        obtain_graph(spec_of(refused))


@pytest.mark.usefixtures("_no_torch")
def test_tensors_that_do_not_fit_are_no_reason_to_take_another_file(tmp_path):
    folder = tiny.tiny_bert(tmp_path / "model")
    foreign_onnx.write(folder / "onnx/model.onnx")
    tiny.edit_json(folder / "config.json", intermediate_size=48)
    with pytest.raises(CheckpointError, match="has shape"):
        obtain_graph(spec_of(folder))


def test_a_file_is_not_taken_for_what_only_a_builder_writes(tmp_path):
    pytest.importorskip("torch")
    folder = tiny_kinds.splade(tmp_path / "model", "bert")
    tiny.edit_json(folder / "config.json", hidden_act="gelu_10")
    foreign_onnx.write(folder / "onnx/model.onnx")
    with pytest.raises(NotComputedError, match="gelu_10"):
        obtain_graph(spec_of(folder))


@pytest.mark.parametrize("change", ["field", "architecture"])
def test_the_file_is_fetched_from_the_hub_when_no_graph_is_built(change, refused, monkeypatch, caplog):
    asked = []

    def resolve(model_id, *, wanted, **_):
        asked.append(wanted.onnx)
        if wanted.onnx:
            foreign_onnx.write(refused / "onnx/model.onnx")
        return Checkpoint(refused, model_id, "hub", revision="1" * 40)

    if change == "architecture":
        monkeypatch.setattr(registry, "_ARCHITECTURES", {})
    monkeypatch.setattr(loader, "resolve", resolve)
    with (
        caplog.at_level(logging.WARNING, "infinity_emb"),
        InfinityPipeline("someone/model", engine="onnxruntime", threads=1, fidelity=0.0) as pipeline,
    ):
        assert pipeline.card.extra["graph"].startswith("onnx/model.onnx")
    assert asked == [False, True]
    assert any("No graph is built for someone/model" in record.message for record in caplog.records)
