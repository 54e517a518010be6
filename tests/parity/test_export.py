"""A checkpoint without graph builder, exported through torch: same results as torch itself, and only once."""

from __future__ import annotations

from pathlib import Path

import pytest

import foreign_onnx
import tiny
from forward import compute, features, opened, spec_of
from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph import obtain_graph, registry

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxscript")
pytestmark = [pytest.mark.parity, pytest.mark.timeout(300)]
ITEMS = [features(length, length, types=length % 2 == 0) for length in (1, 5, 64, 16, 33, 8, 2)]


@pytest.fixture
def _no_builder(monkeypatch):
    monkeypatch.setattr(registry, "_ARCHITECTURES", {})


@pytest.mark.usefixtures("_no_builder")
@pytest.mark.parametrize(
    ("kind", "choices"),
    [("modernbert", {"pooling": ("cls", "mean")}), ("bert", {"labels": ("a", "b")})],
    ids=["embedder with windows", "scorer with token types"],
)
def test_an_exported_graph_computes_what_torch_computes(kind, choices, tmp_path, monkeypatch):
    spec = spec_of(tiny.tiny(kind, tmp_path / "model", **choices))
    with opened("torch", spec) as backend:
        expected = compute(backend, ITEMS)
    for engine in ("openvino", "onnxruntime"):
        pytest.importorskip(engine)
        with opened(engine, spec, cache_folder=tmp_path / "cache") as backend:
            assert backend.report.graph == "exported by torch"
            assert backend.layout.segments_per_row == 1
            outputs = compute(backend, ITEMS)
        for output, array in expected.items():
            assert abs(outputs[output] - array).max() <= 1e-5
        monkeypatch.setattr(torch.onnx, "export", None)  # what comes next must take the kept file
    assert [path.name for path in (tmp_path / "cache/exported").glob("*/*.onnx")] == ["model.onnx"]


@pytest.mark.usefixtures("_no_builder")
def test_only_other_weights_get_another_export(tmp_path, monkeypatch):
    exported = []

    def export(_, __, path, **___):
        exported.append(path)
        foreign_onnx.write(Path(path))

    monkeypatch.setattr(torch.onnx, "export", export)
    for number, seed in enumerate((0, 0, 1)):
        spec = spec_of(tiny.tiny_bert(tmp_path / f"model{number}", seed=seed))
        assert obtain_graph(spec, cache_folder=tmp_path / "cache")[1] == "exported by torch"
    assert len(exported) == 2
    assert len(list((tmp_path / "cache/exported").iterdir())) == 2


@pytest.mark.usefixtures("_no_builder")
def test_what_torch_cannot_export_is_said_and_leaves_nothing_behind(tmp_path, monkeypatch):
    def export(*_, **__):
        raise RuntimeError("no such operator")

    monkeypatch.setattr(torch.onnx, "export", export)
    with pytest.raises(CheckpointError, match="Use --engine torch, which needs no export"):
        obtain_graph(spec_of(tiny.tiny_bert(tmp_path / "model")), cache_folder=tmp_path / "cache")
    assert list((tmp_path / "cache/exported").iterdir()) == []
