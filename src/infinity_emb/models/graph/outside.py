"""Takes the large weights out of an ONNX file's graph, so that backends share one memory-mapped copy of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.graph import Weight

if TYPE_CHECKING:
    import onnx
    from numpy.typing import NDArray

_SMALL = 1024  # numbers; below this a tensor may be a shape or an axis that libraries want to see
_NUMPY: dict[int, type[np.generic]] = {
    TensorProto.FLOAT: np.float32,
    TensorProto.FLOAT16: np.float16,
    TensorProto.BFLOAT16: np.uint16,
    TensorProto.DOUBLE: np.float64,
    TensorProto.INT8: np.int8,
    TensorProto.UINT8: np.uint8,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
}


@dataclass(frozen=True, slots=True)
class Outside:
    """A weight that is no longer in the protobuf.

    Attributes:
        name: In the graph.
        weight: Its numbers.
        as_external: The initializer that stands for it, without data.
        as_input: The graph input that stands for it.
    """

    name: str
    weight: Weight
    as_external: onnx.TensorProto
    as_input: onnx.ValueInfoProto


def take_out(path: Path, graph: onnx.GraphProto) -> list[Outside]:
    """Remove large initializers from `graph` and return them; small ones kept beside the file are read into it.

    Raises:
        CheckpointError: A file with weights is missing, too short, or outside the ONNX file's folder.
    """
    stay, leave = [], []
    for tensor in graph.initializer:
        if math.prod(tensor.dims) < _SMALL or tensor.data_type not in _NUMPY:
            if external_data_helper.uses_external_data(tensor):
                _data_file(path, tensor)
                external_data_helper.load_external_data_for_tensor(tensor, str(path.parent))
            stay.append(tensor)
        else:
            leave.append(_outside(path, tensor))
    kept = [_copy(tensor) for tensor in stay]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return leave


def _copy(tensor: onnx.TensorProto) -> onnx.TensorProto:
    copied = TensorProto()
    copied.CopyFrom(tensor)
    return copied


def _outside(path: Path, tensor: onnx.TensorProto) -> Outside:
    shape = tuple(tensor.dims)
    if external_data_helper.uses_external_data(tensor):
        array = _mapped(path, tensor, shape)
    elif tensor.HasField("raw_data"):
        array = np.frombuffer(bytearray(tensor.raw_data), _NUMPY[tensor.data_type]).reshape(shape)
    else:
        array = np.ascontiguousarray(numpy_helper.to_array(tensor)).view(_NUMPY[tensor.data_type])
    external = TensorProto(name=tensor.name, data_type=tensor.data_type, dims=shape)
    external.data_location = TensorProto.EXTERNAL
    # Only a label: libraries are handed the numbers under the weight's name.
    for key, value in (("location", path.name), ("offset", "0"), ("length", str(array.nbytes))):
        external.external_data.add(key=key, value=value)
    as_input = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(shape))
    return Outside(tensor.name, Weight(array, tensor.data_type), external, as_input)


def _mapped(path: Path, tensor: onnx.TensorProto, shape: tuple[int, ...]) -> NDArray[np.generic]:
    file, offset = _data_file(path, tensor)
    dtype = np.dtype(_NUMPY[tensor.data_type])
    needed = math.prod(shape) * dtype.itemsize
    if file.stat().st_size < offset + needed:
        raise CheckpointError(
            f"{file} is cut short: the weight {tensor.name!r} ends behind it. Download it again.", param=file.name
        )
    # copy-on-write: libraries insist on writable arrays, the file never changes
    raw = np.memmap(file, np.uint8, "c", offset, (needed,))
    if offset % dtype.itemsize:
        raw = raw.copy()  # libraries need aligned memory
    return raw.view(dtype).reshape(shape)


def _data_file(path: Path, tensor: onnx.TensorProto) -> tuple[Path, int]:
    """The file beside the ONNX file that holds a tensor, and the offset in it."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    name = PurePosixPath(entries.get("location", "").replace("\\", "/"))
    if name.is_absolute() or ".." in name.parts or not name.parts or ":" in name.parts[0]:
        raise CheckpointError(
            f"{path} wants weights from {str(name)!r}, outside its own folder. Do not use this file.", param=path.name
        )
    file = path.parent / name
    if not file.is_file():
        raise CheckpointError(
            f"{path} keeps its weights in {name}, which is missing from {path.parent}. Download it too.",
            param=str(name),
        )
    return file, int(entries.get("offset", "0"))
