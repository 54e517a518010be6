"""Compiled models on disk: found again, never out of date, and never in the way."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.tiny import tiny_bert

from infinity_emb.backends import compiled, openvino
from infinity_emb.backends.base import BackendOptions
from infinity_emb.backends.compiled import CompiledModels, Kept, identity
from infinity_emb.backends.openvino import OpenVinoBackend
from infinity_emb.models.hub import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.types import Device, Dtype

if TYPE_CHECKING:
    from pathlib import Path

KEPT = Kept(("input_ids",), ("embedding",), packed=True, origin="built from config")


@pytest.fixture
def store(tmp_path: Path) -> CompiledModels:
    return CompiledModels(tmp_path / "compiled")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "model")


def spec_of(folder: Path):
    return read_spec(Checkpoint(folder, "tiny", "local"))


def options(cache: Path, **extra: object) -> BackendOptions:
    return BackendOptions(
        Device.CPU, Dtype.FLOAT32, threads=1, cache_folder=cache, extra={"compile_cache": True, **extra}
    )


def forward(backend: OpenVinoBackend) -> np.ndarray:
    arrays = {
        "input_ids": np.array([[5, 6, 7, 8]], np.int64),
        "segment_ids": np.array([[1, 1, 2, 2]], np.int64),
        "position_ids": np.array([[0, 1, 0, 1]], np.int64),
        "token_type_ids": np.zeros((1, 4), np.int64),
        "pool_weights": np.array([[1, 1, 0, 0], [0, 0, 1, 1]], np.float32),
    }
    return backend.start({name: arrays[name] for name in backend.inputs}).result()["embedding"].copy()


def test_what_was_written_is_read(store: CompiledModels):
    store.write("a", KEPT, b"\1\2\3" * 5000)
    kept, blob = store.read("a")
    assert kept == KEPT
    assert blob.tobytes() == b"\1\2\3" * 5000


def test_a_model_that_was_never_written_is_not_there(store: CompiledModels):
    assert store.read("a") is None


def test_changing_the_mapped_bytes_leaves_the_file_alone(store: CompiledModels):
    store.write("a", KEPT, b"abc")
    store.read("a")[1][:] = 0
    assert store.read("a")[1].tobytes() == b"abc"


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-1], lambda _: b"", lambda _: b"{}", lambda _: b"\xff" * 9]
)
def test_a_damaged_file_counts_for_nothing_and_is_named(store: CompiledModels, tmp_path: Path, caplog, damage):
    store.write("a", KEPT, b"abc")
    file = next((tmp_path / "compiled").iterdir())
    file.write_bytes(damage(file.read_bytes()))
    assert store.read("a") is None
    assert str(file) in caplog.text


def test_only_the_last_used_are_kept(store: CompiledModels, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(compiled, "MOST_FILES", 2)
    for number, name in enumerate("abc"):
        store.write(name, KEPT, b"abc")
        os.utime(tmp_path / "compiled" / f"{name}.model", (number, number))
    store.read("b")  # used just now
    store.write("d", KEPT, b"abc")
    assert {name for name in "abcd" if store.read(name)} == {"b", "d"}


def test_the_size_of_all_is_bounded_but_the_newest_stays(store: CompiledModels, monkeypatch):
    monkeypatch.setattr(compiled, "MOST_BYTES", 1)
    store.write("a", KEPT, b"abc")
    store.write("b", KEPT, b"abc")
    assert store.read("b") is not None
    assert store.read("a") is None


def test_a_folder_that_cannot_be_made_only_costs_time(tmp_path: Path, caplog):
    (tmp_path / "file").write_text("not a folder")
    caplog.set_level(logging.INFO)
    store = CompiledModels(tmp_path / "file")
    store.write("a", KEPT, b"abc")
    assert "every start compiles it" in caplog.text
    assert store.read("a") is None


def test_a_full_disk_leaves_no_draft_behind(store: CompiledModels, tmp_path: Path, monkeypatch, caplog):
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    caplog.set_level(logging.INFO)
    monkeypatch.setattr(compiled.os, "fsync", full)
    store.write("a", KEPT, b"abc")
    assert "No space left" in caplog.text
    assert list((tmp_path / "compiled").iterdir()) == []


def test_the_identity_follows_weights_settings_and_task(folder: Path):
    spec = spec_of(folder)
    names = {identity(spec, None, ["f32"]), identity(spec, None, ["bf16"]), identity(spec, "model.onnx", ["f32"])}
    names.add(identity(replace(spec, max_length=7), None, ["f32"]))
    weights = folder / "model.safetensors"
    times = weights.stat()
    content = bytearray(weights.read_bytes())
    content[-1000:] = bytes(1000)
    weights.write_bytes(content)
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))  # same size, same time: the samples differ
    names.add(identity(spec, None, ["f32"]))
    assert len(names) == 5
    assert identity(spec, None, ["f32"]) in names


def test_openvino_gives_the_same_bits_from_a_kept_model_without_building_a_graph(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(openvino, "WORTHWHILE_BYTES", 0)
    first = OpenVinoBackend(spec_of(folder), options(tmp_path))
    monkeypatch.setattr(openvino, "_compile", lambda *_: pytest.fail("compiled again"))
    second = OpenVinoBackend(spec_of(folder), options(tmp_path))
    assert second.report == first.report
    assert second.layout == first.layout
    np.testing.assert_array_equal(forward(second), forward(first))


def test_openvino_compiles_again_when_it_refuses_what_was_kept(folder, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(openvino, "WORTHWHILE_BYTES", 0)
    first = OpenVinoBackend(spec_of(folder), options(tmp_path))
    file = next((tmp_path / "compiled").iterdir())
    content = file.read_bytes()
    file.write_bytes(content[:4096] + bytes(len(content) - 4096))
    second = OpenVinoBackend(spec_of(folder), options(tmp_path))
    assert "refuses the compiled model" in caplog.text
    np.testing.assert_array_equal(forward(second), forward(first))
    assert file.read_bytes()[4096:4104] != bytes(8)  # kept anew


def test_nothing_is_kept_unless_asked_for_or_when_small(folder, tmp_path):
    OpenVinoBackend(spec_of(folder), options(tmp_path))
    OpenVinoBackend(spec_of(folder), options(tmp_path, compile_cache=False))
    assert not (tmp_path / "compiled").exists()
