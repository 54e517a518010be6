from __future__ import annotations

import logging

import numpy as np
import pytest

import foreign_onnx
import tiny
from forward import compute, compute_alone, features, opened, spec_of
from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph import obtain_graph, registry

onnx = pytest.importorskip("onnx")
ITEMS = [features(length, length) for length in (5, 60, 17, 1, 33)]
BACKENDS = ["openvino", "onnxruntime"]


@pytest.fixture(autouse=True)
def _no_builder(monkeypatch):
    monkeypatch.setattr(registry, "_ARCHITECTURES", {})


@pytest.fixture
def folder(tmp_path):
    return tiny.tiny_bert(tmp_path / "model")


def vectors(folder, backend="onnxruntime", **changes):
    pytest.importorskip(backend)
    with opened(backend, spec_of(folder), **changes) as made:
        return compute(made, ITEMS)["embedding"], made.report.graph


def test_a_builder_comes_before_a_file(folder, monkeypatch):
    monkeypatch.undo()
    foreign_onnx.write(folder / "onnx/model.onnx")
    assert obtain_graph(spec_of(folder))[1] == "built from config"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("opset", [11, 14, 17, 20])
@pytest.mark.parametrize("beside", [False, True], ids=["weights inside", "weights beside"])
def test_the_repositorys_own_file_is_computed_with_our_pooling(folder, backend, opset, beside):
    table = foreign_onnx.write(folder / "onnx/model.onnx", opset=opset, beside=beside)
    made, origin = vectors(folder, backend)
    assert origin == "onnx/model.onnx"
    states = [foreign_onnx.states(table, item.token_ids) for item in ITEMS]
    means = np.stack([state.mean(axis=0) for state in states])
    np.testing.assert_allclose(made, means / np.linalg.norm(means, axis=1, keepdims=True), rtol=0, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_pooling_mode_works_behind_an_old_file(tmp_path, backend):
    modes = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
    folder = tiny.tiny_bert(tmp_path, pooling=modes, dense=8)
    foreign_onnx.write(folder / "model.onnx", opset=11)
    pytest.importorskip(backend)
    with opened(backend, spec_of(folder)) as made:
        mixed, alone = compute(made, ITEMS)["embedding"], compute_alone(made, ITEMS)["embedding"]
    assert mixed.shape == (len(ITEMS), 8)
    np.testing.assert_allclose(mixed, alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_scorers_file_gives_its_logits(tmp_path, backend):
    folder = tiny.tiny_bert(tmp_path, labels=("a", "b"))
    table = foreign_onnx.write(folder / "onnx/model.onnx", labels=2)
    pytest.importorskip(backend)
    with opened(backend, spec_of(folder)) as made:
        logits = compute(made, ITEMS)["logits"]
    expected = np.stack([foreign_onnx.states(table, item.token_ids)[0, :2] for item in ITEMS])
    np.testing.assert_allclose(logits, expected, rtol=0, atol=1e-6)


def test_the_choice_among_several_files_is_always_the_same_and_is_logged(folder, caplog):
    foreign_onnx.write(folder / "onnx/model_quantized.onnx")
    foreign_onnx.write(folder / "model_optimized.onnx")
    foreign_onnx.write(folder / "model.onnx", seed=1)
    with caplog.at_level(logging.INFO, "infinity_emb"):
        first, origin = vectors(folder)
    assert origin == "model.onnx"
    assert any("own ONNX file" in record.message and "model.onnx" in record.message for record in caplog.records)
    foreign_onnx.write(folder / "onnx/model.onnx", seed=2)
    second, origin = vectors(folder)
    assert origin == "onnx/model.onnx"
    assert abs(first - second).max() > 1e-3
    np.testing.assert_array_equal(vectors(folder)[0], second)


@pytest.mark.parametrize("name", ["onnx/model_quantized.onnx", "model_optimized.onnx"])
def test_a_file_of_another_name_is_used_when_it_is_asked_for(folder, name):
    foreign_onnx.write(folder / "onnx/model.onnx", seed=1)
    foreign_onnx.write(folder / name, seed=2)
    usual, _ = vectors(folder)
    named, origin = vectors(folder, extra={"onnx_file": name})
    assert origin == name
    assert abs(usual - named).max() > 1e-3


def test_a_file_that_is_asked_for_and_not_there_is_answered_with_those_that_are(folder):
    foreign_onnx.write(folder / "onnx/model.onnx")
    for name in ("onnx/other.onnx", "../outside.onnx"):
        with pytest.raises(CheckpointError, match=r"does not exist .*onnx/model\.onnx"):
            obtain_graph(spec_of(folder), onnx_file=name)


def test_a_quantised_file_under_the_usual_name_is_not_taken_for_the_models_own(folder, caplog, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    foreign_onnx.write(folder / "onnx/model.onnx", quantized=True)
    with caplog.at_level(logging.WARNING, "infinity_emb"), pytest.raises(CheckpointError, match="no graph builder"):
        obtain_graph(spec_of(folder))
    assert any("--onnx-file" in record.message for record in caplog.records)


def test_without_builder_file_and_torch_the_error_says_what_to_do(folder, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(CheckpointError, match=r"no graph builder .*pip install .*--engine torch.*--onnx-file"):
        obtain_graph(spec_of(folder))


@pytest.mark.parametrize(
    ("choices", "complaint"),
    [
        ({"extra_input": "past_key_values.0.key"}, r"takes .*past_key_values.0.key; supported are"),
        ({"pooled": True}, "none are token states"),
        ({"hidden": 16}, "16 wide, but config.json says 32"),
        ({"opset": 9}, "operator set 9"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_the_reason(folder, choices, complaint):
    foreign_onnx.write(folder / "onnx/model.onnx", **choices)
    with pytest.raises(CheckpointError, match=complaint):
        obtain_graph(spec_of(folder))


def test_a_broken_file_is_named(folder):
    (folder / "model.onnx").write_bytes(b"\xff\xffnot a graph")
    with pytest.raises(CheckpointError, match=r"model.onnx is not a readable ONNX file"):
        obtain_graph(spec_of(folder))


def test_weights_that_are_missing_cut_short_or_outside_of_the_folder_are_named(folder):
    path = folder / "onnx/model.onnx"
    foreign_onnx.write(path, beside=True)
    data = folder / "onnx/model.onnx_data"
    data.write_bytes(data.read_bytes()[:-4])
    with pytest.raises(CheckpointError, match="cut short"):
        obtain_graph(spec_of(folder))
    data.unlink()
    with pytest.raises(CheckpointError, match=r"model.onnx_data, which is missing"):
        obtain_graph(spec_of(folder))
    foreign_onnx.write(path, beside=True, location="../model.safetensors")
    with pytest.raises(CheckpointError, match="outside its own folder"):
        obtain_graph(spec_of(folder))
