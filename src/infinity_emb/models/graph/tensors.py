"""Finds a checkpoint's tensors by name, across its safetensors files, without reading them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.graph import Weight
from infinity_emb.models.safetensors_file import read_header

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from infinity_emb.models.safetensors_file import TensorInfo

# safetensors dtype → (numpy view of the bytes, onnx.TensorProto.DataType)
_DTYPES: dict[str, tuple[type[np.generic], int]] = {
    "F32": (np.float32, 1),
    "F16": (np.float16, 10),
    "BF16": (np.uint16, 16),
    "F64": (np.float64, 11),
    "I64": (np.int64, 7),
    "I32": (np.int32, 6),
    "I8": (np.int8, 3),
}


@dataclass(frozen=True, slots=True)
class Location:
    """Where a tensor lies."""

    file: Path
    info: TensorInfo

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions."""
        return tuple(self.info.shape)


class Tensors:
    """Name → location for all files of a checkpoint.

    Args:
        files: Safetensors files.
        prefixes: Prefixes that a wrapping class may have put before every name, tried in order
            (`bert.` for `BertForSequenceClassification`).
        scope: Put before names in the graph, where two files hold tensors of the same name.
    """

    def __init__(self, files: Iterable[Path], prefixes: tuple[str, ...] = (), scope: str = "") -> None:
        self.scope = scope
        self._locations: dict[str, Location] = {}
        self._maps: dict[Path, np.memmap] = {}
        for file in files:
            for name, info in read_header(file).items():
                self._locations[name] = Location(file, info)
        self._prefixes = (*prefixes, "")

    def find(self, name: str) -> tuple[str, Location]:
        """Full name and place of a tensor; raises `CheckpointError` if there is none."""
        for prefix in self._prefixes:
            for candidate in _spellings(prefix + name):
                if candidate in self._locations:
                    return candidate, self._locations[candidate]
        some = ", ".join(sorted(self._locations)[:4])
        files = ", ".join(sorted({location.file.name for location in self._locations.values()}))
        raise CheckpointError(
            f"The tensor {name!r} is missing from {files or 'the checkpoint'} (it holds {len(self._locations)}, "
            f"such as {some}). The checkpoint does not match its config.json; fetch it again or fix the config.",
            param=name,
        )

    def has(self, name: str) -> bool:
        """Whether `find` would succeed."""
        return any(s in self._locations for prefix in self._prefixes for s in _spellings(prefix + name))

    def weight(self, location: Location) -> Weight:
        """Memory-mapped view of a tensor."""
        info = location.info
        if info.dtype not in _DTYPES:
            raise CheckpointError(
                f"A tensor in {location.file.name} is stored as {info.dtype}; known: {', '.join(_DTYPES)}.",
                param=location.file.name,
            )
        numpy_type, onnx_type = _DTYPES[info.dtype]
        if location.file not in self._maps:
            # copy-on-write: libraries insist on writable arrays, the file never changes
            self._maps[location.file] = np.memmap(location.file, np.uint8, "c")
        raw = self._maps[location.file][info.start : info.stop]
        if info.start % np.dtype(numpy_type).itemsize:
            raw = raw.copy()  # old writers did not align; libraries need aligned memory
        return Weight(raw.view(numpy_type).reshape(location.shape), onnx_type)


def module_tensors(weights: Path) -> Tensors:
    """Those of a small module, apart from those of other modules that have the same names."""
    return Tensors([weights], scope=f"{weights.parent.name}/")


def _spellings(name: str) -> tuple[str, ...]:
    """A name and how checkpoints converted from TensorFlow spell it."""
    if name.endswith("LayerNorm.weight"):
        return name, name.removesuffix("weight") + "gamma"
    if name.endswith("LayerNorm.bias"):
        return name, name.removesuffix("bias") + "beta"
    return (name,)
