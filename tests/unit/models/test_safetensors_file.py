"""The safetensors reader finds tensors and refuses files that are not whole."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

import tiny
from infinity_emb.errors import CheckpointError
from infinity_emb.models.safetensors_file import load_tensor, read_header


def write(path, header, data=b"", *, header_bytes=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if header_bytes is None else header_bytes) + text + data)
    return path


def entry(start=0, stop=8, dtype="F32", shape=(2,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, stop]}


def test_offsets_are_absolute_and_point_at_the_bytes(tmp_path):
    path = write(tmp_path / "m.safetensors", {"b": entry(8, 16), "a": entry()}, struct.pack("<4f", 1, 2, 3, 4))
    header = read_header(path)
    assert list(header) == ["a", "b"]
    for name, expected in (("a", (1, 2)), ("b", (3, 4))):
        info = header[name]
        assert struct.unpack("<2f", path.read_bytes()[info.start : info.stop]) == expected
        assert load_tensor(path, name).tolist() == list(expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_every_float_type_is_read_as_float32(dtype, tmp_path):
    values = np.array([[0.5, -1.25], [3.0, 1e-3]], np.float32)
    tiny.save_tensors(tmp_path, {"x": values}, dtype)
    read = load_tensor(tmp_path / "model.safetensors", "x")
    assert read.dtype == np.float32
    np.testing.assert_allclose(read, values, rtol=1e-2 if "16" in dtype else 0)


def test_float32_is_mapped_not_copied_and_scalars_and_empty_tensors_work(tmp_path):
    tensors = {
        "x": np.ones((2, 3), np.float32),
        "scalar": np.array(2.0, np.float32),
        "none": np.zeros((0, 4), np.float32),
    }
    tiny.save_tensors(tmp_path, tensors, "float32")
    path = tmp_path / "model.safetensors"
    assert isinstance(load_tensor(path, "x"), np.memmap)
    assert load_tensor(path, "scalar").shape == ()
    assert load_tensor(path, "none").shape == (0, 4)


@pytest.mark.parametrize(
    ("header", "data", "reason"),
    [
        ({"a": entry()}, bytes(7), "cut short"),
        ({"a": entry()}, bytes(9), "after its last tensor"),
        ({"a": entry(), "b": entry(4, 12)}, bytes(12), "expected"),
        ({"a": entry(), "b": entry(12, 20)}, bytes(20), "expected"),
        ({"a": entry(4, 12)}, bytes(12), "expected"),
        ({"a": entry(0, 4)}, bytes(4), "needs 8"),
        ({"a": entry(8, 0)}, bytes(8), "needs 8"),
        ({"a": entry(dtype="F33")}, bytes(8), "F33"),
        ({"a": entry(shape=(-2,))}, bytes(8), "malformed"),
        ({"a": {"dtype": "F32"}}, bytes(8), "malformed"),
        ([1], b"", "not a JSON object"),
        (b"{broken", b"", "not valid"),
        (b"\xff\xfe", b"", "not valid"),
        (b'{"a": 1, "a": 2}', b"", "twice"),
    ],
)
def test_a_broken_file_is_refused_by_name_and_reason(header, data, reason, tmp_path):
    path = write(tmp_path / "broken.safetensors", header, data)
    with pytest.raises(CheckpointError, match=reason) as caught:
        read_header(path)
    assert caught.value.param == "broken.safetensors"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "too few"),
        (b"1234", "too few"),
        (struct.pack("<Q", 1000) + b"{}", "cut short"),
        (struct.pack("<Q", 2**60) + b"{}", "does not start like"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS pointer"),
    ],
)
def test_what_is_no_safetensors_file_is_refused(content, reason, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=reason):
        read_header(path)


def test_missing_files_and_tensors_are_named(tmp_path):
    with pytest.raises(CheckpointError, match="missing"):
        read_header(tmp_path / "absent.safetensors")
    path = write(tmp_path / "m.safetensors", {"a": entry(dtype="I32")}, bytes(8))
    with pytest.raises(CheckpointError, match=r"'b' is missing.*a"):
        load_tensor(path, "b")
    with pytest.raises(CheckpointError, match="I32"):
        load_tensor(path, "a")


def test_a_file_cut_anywhere_is_refused(tmp_path):
    tiny.save_tensors(tmp_path, {"x": np.ones((4, 4), np.float32), "y": np.ones(3, np.float32)}, "float32")
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    assert len(read_header(path)) == 2
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointError):
            read_header(path)
