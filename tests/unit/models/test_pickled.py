"""Pickled weights are read as numbers without torch, and nothing in them is run."""

from __future__ import annotations

import pickle
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file

import tiny
from infinity_emb import InfinityPipeline
from infinity_emb.errors import CheckpointError
from infinity_emb.models.pickled import convert


def archive(path, content, data=None):
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("x/data.pkl", pickle.dumps(content, 2) if data is None else data)
    return path


class _Runs:
    """Would make a file when it is unpickled."""

    def __init__(self, path) -> None:
        self._path = path

    def __reduce__(self):
        return open, (str(self._path), "w")


def test_what_would_run_is_refused_by_name_and_not_run(tmp_path):
    source = archive(tmp_path / "pytorch_model.bin", {"weight": _Runs(tmp_path / "run")})
    with pytest.raises(CheckpointError, match=r"io\.open, which is not part of a tensor and was not run"):
        convert(source, tmp_path / "out")
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.write_bytes(pickle.dumps({}, 2)), "before torch 1.6"),
        (lambda path: archive(path, {"a": 1}), "something else than tensors"),
        (lambda path: archive(path, [1]), "something else than tensors"),
        (lambda path: archive(path, None, b"\x80\x02}q"), "damaged"),
        (lambda path: zipfile.ZipFile(path, "w").close(), "no file of torch"),
    ],
)
def test_what_is_no_table_of_tensors_is_refused(make, reason, tmp_path):
    source = tmp_path / "pytorch_model.bin"
    make(source)
    with pytest.raises(CheckpointError, match=reason):
        convert(source, tmp_path / "out")


def test_every_format_and_view_becomes_the_same_numbers(tmp_path):
    torch = pytest.importorskip("torch")
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {
        "plain": base,
        "turned": base.t(),
        "part": base[1:3, 2:5],
        "parameter": torch.nn.Parameter(torch.ones(3)),
        "half": torch.randn(5).half(),
        "whole": torch.arange(7),
        "scalar": torch.tensor(3.5),
        "nothing": torch.zeros(0, 4),
    }
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    convert(tmp_path / "pytorch_model.bin", tmp_path / "model.safetensors")
    found = load_file(tmp_path / "model.safetensors")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor.detach().numpy())


def test_a_view_beyond_its_storage_is_refused(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.zeros(4)}, tmp_path / "good.bin")
    with zipfile.ZipFile(tmp_path / "good.bin") as good, zipfile.ZipFile(tmp_path / "bad.bin", "w") as bad:
        for name in good.namelist():
            bad.writestr(name, b"1234" if name.endswith("data/0") else good.read(name))
    with pytest.raises(CheckpointError, match="beyond its storage"):
        convert(tmp_path / "bad.bin", tmp_path / "out")


def test_a_repository_of_pickles_gives_the_vectors_of_the_same_safetensors(tmp_path):
    torch = pytest.importorskip("torch")
    folder = tiny.tiny_bert(tmp_path / "model", dense=16)
    settings = {"engine": "onnxruntime", "threads": 1, "cache_folder": str(tmp_path / "cache"), "fidelity": 0.0}
    with InfinityPipeline(str(folder), **settings) as pipeline:
        wanted = pipeline.encode(["tea", "lima is the capital of peru"])
    for place in (folder, folder / "2_Dense"):
        file = place / "model.safetensors"
        torch.save({name: torch.tensor(one) for name, one in load_file(file).items()}, place / "pytorch_model.bin")
        file.unlink()
    with pytest.raises(CheckpointError, match="--allow-pickle"):
        InfinityPipeline(str(folder), **settings)
    for bar in (0.0, 0.9999):
        with InfinityPipeline(str(folder), allow_pickle=True, **(settings | {"fidelity": bar})) as pipeline:
            assert pipeline.card.extra["graph"] == "built from config"
            assert ("fidelity_min_cosine" in pipeline.card.extra) == (bar > 0)
            np.testing.assert_array_equal(pipeline.encode(["tea", "lima is the capital of peru"]), wanted)
    assert len(list((tmp_path / "cache/unpickled").glob("*/model.safetensors"))) == 2
