"""Reads the header of a safetensors file, strictly, and maps single tensors; needs no library but numpy.

Format: 8 bytes little-endian header length, a JSON object name → {dtype, shape, data_offsets}, then the tensors' bytes
without gaps. Everything is checked before a byte of a tensor is touched, so that a half-finished download is named here
and not as a wrong vector later.
"""

from __future__ import annotations

import json
import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from infinity_emb.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    import numpy as np
    from numpy.typing import NDArray

ITEM_BYTES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U64": 8,
    "U32": 4,
    "U16": 2,
    "U8": 1,
    "BOOL": 1,
}
_FLOATS = ("F64", "F32", "F16", "BF16")
_HEADER_LIMIT_BYTES = 100_000_000  # what the format's own library allows
_AGAIN = "Download the file again."


class TensorInfo(NamedTuple):
    """Where a tensor lies in the file.

    Attributes:
        dtype: The format's own name, a key of `ITEM_BYTES`.
        shape: Its axes.
        start: Absolute offset of its first byte.
        stop: Absolute offset after its last byte.
    """

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


def read_header(path: Path) -> dict[str, TensorInfo]:
    """Read and check the header.

    Returns:
        Name → place, in the order of the bytes.

    Raises:
        CheckpointError: The file is missing, cut short, or no valid safetensors file; `param` is its name.
    """
    try:
        with path.open("rb") as file:
            file_bytes = file.seek(0, 2)
            file.seek(0)
            entries, data_start = _read_json(file, path, file_bytes)
    except FileNotFoundError:
        raise _error(path, f"the file is missing ({path}). {_AGAIN}") from None
    except OSError as error:
        raise _error(path, f"the file cannot be read ({error}).") from error
    tensors = [(name, _place(path, name, entry, data_start)) for name, entry in entries.items()]
    tensors.sort(key=lambda item: (item[1].start, item[1].stop))
    _check_coverage(path, tensors, data_start, file_bytes)
    return dict(tensors)


def load_tensor(path: Path, name: str) -> NDArray[np.float32]:
    """One tensor as float32; float32 tensors stay memory-mapped, others are converted.

    Raises:
        CheckpointError: As `read_header`, or the tensor is missing or not a float.
    """
    import numpy as np  # noqa: PLC0415 - the header must be readable without it

    header = read_header(path)
    if name not in header:
        raise _error(path, f"tensor {name!r} is missing. It holds: {', '.join(list(header)[:8]) or 'nothing'} …")
    info = header[name]
    if info.dtype not in _FLOATS:
        raise _error(path, f"tensor {name!r} is {info.dtype}; allowed here: {', '.join(_FLOATS)}.")
    if info.start == info.stop:
        return np.zeros(info.shape, np.float32)
    stored = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}[info.dtype]
    mapped = np.memmap(path, dtype=stored, mode="r", offset=info.start, shape=info.shape)
    if info.dtype == "BF16":  # a bfloat16 is the upper half of a float32
        return (mapped.astype(np.uint32) << 16).view(np.float32)
    return mapped if info.dtype == "F32" else mapped.astype(np.float32)


def _read_json(file: BinaryIO, path: Path, file_bytes: int) -> tuple[dict[str, Any], int]:
    """The header's entries without metadata, and where the tensors' bytes begin."""
    prefix = file.read(8)
    if len(prefix) < 8:
        raise _error(path, f"it has only {file_bytes} bytes, too few for a safetensors file. {_AGAIN}")
    if prefix.startswith(b"version "):
        raise _error(path, "it is a Git LFS pointer, not the weights. Run `git lfs pull`, or download the file itself.")
    (header_bytes,) = struct.unpack("<Q", prefix)
    if header_bytes > _HEADER_LIMIT_BYTES:
        raise _error(path, f"it does not start like a safetensors file (header of {header_bytes:,} bytes). {_AGAIN}")
    text = file.read(header_bytes)
    if len(text) < header_bytes:
        raise _error(
            path, f"it is cut short: {file_bytes:,} bytes, the header alone takes {header_bytes + 8:,}. {_AGAIN}"
        )
    try:
        entries = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:  # JSON, UTF-8 and duplicate-name errors alike
        raise _error(path, f"its header is not valid ({error}). {_AGAIN}") from error
    if not isinstance(entries, dict):
        raise _error(path, f"its header is not a JSON object. {_AGAIN}")
    entries.pop("__metadata__", None)
    return entries, 8 + header_bytes


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """JSON objects may not name a key twice: readers would disagree on which one counts."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError("a name appears twice")
    return entries


def _place(path: Path, name: str, entry: Any, data_start: int) -> TensorInfo:
    """Check one entry and make its offsets absolute."""
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "data_offsets": [int(start), int(stop)]} if all(
            isinstance(axis, int) and axis >= 0 for axis in shape
        ):
            pass
        case _:
            raise _error(path, f"the header entry of {name!r} is malformed. {_AGAIN}")
    if dtype not in ITEM_BYTES:
        raise _error(path, f"tensor {name!r} has the unknown dtype {dtype!r}; known: {', '.join(ITEM_BYTES)}.")
    expected = math.prod(shape) * ITEM_BYTES[dtype]
    if start < 0 or stop - start != expected:
        raise _error(path, f"tensor {name!r} takes {stop - start} bytes, {dtype}{shape} needs {expected}. {_AGAIN}")
    return TensorInfo(dtype, tuple(shape), data_start + start, data_start + stop)


def _check_coverage(path: Path, tensors: list[tuple[str, TensorInfo]], data_start: int, file_bytes: int) -> None:
    """The tensors must cover the rest of the file exactly, without gap or overlap."""
    end = data_start
    for name, info in tensors:
        if info.start != end:
            raise _error(path, f"tensor {name!r} starts at byte {info.start}, expected {end}. {_AGAIN}")
        end = info.stop
    if file_bytes < end:
        raise _error(path, f"it is cut short: {file_bytes:,} bytes of {end:,}. {_AGAIN}")
    if file_bytes > end:
        raise _error(path, f"it has {file_bytes - end:,} bytes after its last tensor. {_AGAIN}")


def _error(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"{path.name}: {reason}", param=path.name)
