from __future__ import annotations

import logging

import numpy as np
import pytest

import tiny
from forward import compute, features, opened, options, spec_of
from infinity_emb.backends.registry import backend_class
from infinity_emb.errors import CheckpointError, ConfigurationError
from infinity_emb.types import Device, Dtype, InferenceEngine

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
ITEMS = [features(length, length) for length in (5, 60, 17, 1, 33)]


def backend(folder, **changes):
    return opened("torch", spec_of(folder), **changes)


def test_families_that_allow_it_get_packed_rows_and_others_one_text_a_row(tmp_path):
    with backend(tiny.tiny_bert(tmp_path / "bert")) as packed:
        assert packed.layout.segments_per_row is None
    with backend(tiny.tiny_modernbert(tmp_path / "modernbert")) as padded:
        assert padded.layout.segments_per_row == 1


@pytest.mark.parametrize("labels", [(), ("relevant",)], ids=["embedder", "scorer"])
@pytest.mark.parametrize("kind", ["bert", "roberta", "electra", "albert", "distilbert"])
def test_packed_rows_give_what_padded_rows_give(kind, labels, tmp_path, monkeypatch):
    folder = tiny.tiny(kind, tmp_path, labels=labels)
    with backend(folder) as made:
        packed = compute(made, ITEMS)
    monkeypatch.setattr("infinity_emb.backends.torch.packs", lambda *_: False)
    with backend(folder) as made:
        assert made.layout.segments_per_row == 1
        padded = compute(made, ITEMS)
    for output in packed:
        np.testing.assert_allclose(packed[output], padded[output], rtol=0, atol=5e-6)


def test_the_number_of_threads_is_the_one_asked_for(tmp_path):
    with backend(tiny.tiny_bert(tmp_path), threads=1) as made:
        assert made.report.threads == 1


@pytest.mark.parametrize("dtype", [Dtype.FLOAT16, Dtype.BFLOAT16])
def test_half_precision_gives_float32_vectors_that_are_close(dtype, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    with backend(folder) as full, backend(folder, dtype=dtype) as half:
        assert half.report.dtype is dtype
        exact, rounded = compute(full, ITEMS)["embedding"], compute(half, ITEMS)["embedding"]
    assert rounded.dtype == np.float32
    assert 1e-6 < abs(exact - rounded).max() < 0.05


def test_the_dtype_is_float32_on_a_cpu_when_left_open(tmp_path):
    with backend(tiny.tiny_bert(tmp_path, dtype="bfloat16"), dtype=Dtype.AUTO, device=Device.CPU) as made:
        assert made.report.dtype is Dtype.FLOAT32


def test_a_batch_size_in_tokens_is_taken_over(tmp_path):
    with backend(tiny.tiny_bert(tmp_path), extra={"batch_tokens": 96}) as made:
        assert made.layout.batch_tokens == 96


@pytest.mark.parametrize("when", ["at once", "at the first call"])
def test_where_compilation_cannot_work_the_model_runs_without_it_and_says_so(when, tmp_path, monkeypatch, caplog):
    def refuse(*_, **__):
        raise RuntimeError("no compiler here\nand a long story")

    folder = tiny.tiny_bert(tmp_path)
    with backend(folder) as plain:
        expected = compute(plain, ITEMS)["embedding"]
    monkeypatch.setattr(torch, "compile", refuse if when == "at once" else lambda *_, **__: refuse)
    with caplog.at_level(logging.WARNING, "infinity_emb"), backend(folder, compile=True) as made:
        np.testing.assert_array_equal(compute(made, ITEMS)["embedding"], expected)
    messages = [record.message for record in caplog.records]
    assert len(messages) == 1
    assert "torch.compile does not work here (no compiler here)" in messages[0]


def test_a_compiled_module_is_used(tmp_path, monkeypatch):
    calls = []

    def compiled(module, **_):
        return lambda **inputs: calls.append(set(inputs)) or module(**inputs)

    monkeypatch.setattr(torch, "compile", compiled)
    with backend(tiny.tiny_bert(tmp_path), compile=True) as made:
        compute(made, ITEMS)
    assert "attention_mask" in calls[0]


def test_missing_weights_are_named_and_never_random(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.edit_json(folder / "config.json", num_hidden_layers=tiny.LAYERS + 1)
    with pytest.raises(CheckpointError, match=r"do not fit its config.json: 16 tensors .*encoder.layer.2"):
        backend_class(InferenceEngine.TORCH)(spec_of(folder), options())


def test_a_missing_pooler_is_no_fault_of_an_embedder(tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = tiny.tiny_bert(tmp_path)
    tensors = {name: tensor for name, tensor in load_file(folder / "model.safetensors").items() if "pooler" not in name}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with backend(folder) as made:
        assert compute(made, ITEMS)["embedding"].shape == (len(ITEMS), tiny.HIDDEN)


def test_an_architecture_that_transformers_does_not_know_is_an_error_of_the_checkpoint(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.edit_json(folder / "config.json", model_type="no_such_model")
    with pytest.raises(CheckpointError, match=r"transformers cannot load .*no_such_model"):
        backend_class(InferenceEngine.TORCH)(spec_of(folder), options())


def test_python_code_of_a_repository_is_not_run_unless_asked_for(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    (folder / "own.py").write_text("raise SystemExit('code of the repository was run')\n")
    tiny.edit_json(
        folder / "config.json", model_type="own_model", auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"}
    )
    with pytest.raises(CheckpointError, match="--trust-remote-code"):
        backend_class(InferenceEngine.TORCH)(spec_of(folder), options())


def test_a_cuda_device_that_does_not_exist_is_refused_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ConfigurationError, match=r"--device-id 2 .*2 CUDA devices") as caught:
        backend_class(InferenceEngine.TORCH)(
            spec_of(tiny.tiny_bert(tmp_path)), options(device_id=2, device=Device.CUDA)
        )
    assert caught.value.param == "device_id"
