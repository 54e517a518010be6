"""Reads pickled weights without running anything of them, and writes them again as safetensors; needs no torch.

Format: what `torch.save` writes since 1.6, a zip file with `data.pkl` (names, shapes, places) and the raw bytes of each
storage. The unpickler knows the handful of names that tensors are made of, each replaced by a function of this module;
any other name ends the reading before it is looked up.
"""

from __future__ import annotations

import json
import math
import pickle
import struct
import zipfile
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError, NotComputedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# storage class of torch → safetensors name and bytes of a number
_STORAGES = {
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "DoubleStorage": ("F64", 8),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}
_BROKEN = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    EOFError,
    OSError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    struct.error,
    RecursionError,
)


@dataclass(frozen=True, slots=True)
class _Storage:
    """Raw numbers: the file's key, the format's name and the bytes of one."""

    key: str
    dtype: str
    item_bytes: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    """A view of a storage, in numbers."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


def convert(source: Path, target: Path) -> None:
    """Write the tensors of a pickle as a safetensors file.

    Raises:
        NotComputedError: It is in the format from before torch 1.6.
        CheckpointError: It holds more than tensors, or is broken.
    """
    with _opened(source) as (archive, root, tensors):
        _write(archive, f"{root}data/", tensors, target)


def read_shapes(source: Path) -> dict[str, tuple[int, ...]]:
    """Name → shape of the tensors of a pickle.

    Raises: as `convert`.
    """
    with _opened(source) as (_, _, tensors):
        return {name: one.shape for name, one in tensors.items()}


@contextmanager
def _opened(source: Path) -> Iterator[tuple[zipfile.ZipFile, str, dict[str, _Tensor]]]:
    """The archive, the folder inside it, and its tensors; whatever fails becomes a refusal."""
    try:
        with zipfile.ZipFile(source) as archive:
            root = next(name for name in archive.namelist() if name.endswith("/data.pkl")).removesuffix("data.pkl")
            if f"{root}byteorder" in archive.namelist() and archive.read(f"{root}byteorder") != b"little":
                raise _refusal(source, "their numbers are stored big-endian")
            with archive.open(f"{root}data.pkl") as file:
                tensors = _checked(source, _Unpickler(file, source).load())
            yield archive, root, tensors
    except StopIteration:
        raise _refusal(source, "this is no file of torch.save") from None
    except zipfile.BadZipFile:  # torch itself may still read it, so that an export is possible
        refusal = _refusal(source, "they are in the format from before torch 1.6, or damaged")
        raise NotComputedError(refusal.message, param=refusal.param) from None
    except _BROKEN as error:
        if isinstance(error, CheckpointError):
            raise
        raise _refusal(source, f"the file is damaged ({type(error).__name__}: {error})") from error


class _Unpickler(pickle.Unpickler):
    """Makes dictionaries and descriptions of tensors, and nothing else."""

    def __init__(self, file: Any, source: Path) -> None:
        super().__init__(file)
        self._source = source

    def find_class(self, module: str, name: str) -> Any:
        """Only what tensors are made of; the name of anything else is told, never looked up."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild_tensor
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return _rebuild_parameter
        if module == "torch" and name in _STORAGES:
            return name
        raise _refusal(
            self._source, f"the file asks for {module}.{name}, which is not part of a tensor and was not run"
        )

    def persistent_load(self, identity: Any) -> _Storage:
        """A storage by its key."""
        _, kind, key, _, _ = identity
        return _Storage(str(key), *_STORAGES[kind])


def _rebuild_tensor(storage: _Storage, offset: int, shape: Any, stride: Any, *_: Any) -> _Tensor:
    return _Tensor(storage, int(offset), tuple(map(int, shape)), tuple(map(int, stride)))


def _rebuild_parameter(data: _Tensor, *_: Any) -> _Tensor:
    return data


def _checked(source: Path, found: Any) -> dict[str, _Tensor]:
    if not isinstance(found, dict) or not all(
        isinstance(name, str) and isinstance(one, _Tensor) for name, one in found.items()
    ):
        raise _refusal(source, "the file holds something else than tensors by name")
    return dict(found)


def _write(archive: zipfile.ZipFile, data: str, tensors: dict[str, _Tensor], target: Path) -> None:
    header: dict[str, Any] = {}
    place = 0
    for name, one in tensors.items():
        size = math.prod(one.shape) * one.storage.item_bytes
        header[name] = {"dtype": one.storage.dtype, "shape": list(one.shape), "data_offsets": [place, place + size]}
        place += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with target.open("wb") as out:
        out.write(struct.pack("<Q", len(text)))
        out.write(text)
        for one in tensors.values():
            out.write(_numbers(archive.read(data + one.storage.key), one))


def _numbers(raw: bytes, one: _Tensor) -> bytes:
    """The bytes of a tensor in row order."""
    import numpy as np  # noqa: PLC0415 - weights that are no pickles need none of this

    size = one.storage.item_bytes
    items = np.frombuffer(raw, np.dtype((np.void, size)))
    last = one.offset + sum((length - 1) * step for length, step in zip(one.shape, one.stride, strict=True))
    if min(one.shape, default=1) > 0 and (one.offset < 0 or min(one.stride, default=0) < 0 or last >= len(items)):
        raise ValueError("a tensor reaches beyond its storage")
    view = np.lib.stride_tricks.as_strided(items[one.offset :], one.shape, [step * size for step in one.stride])
    return view.tobytes()


def _refusal(source: Path, reason: str) -> CheckpointError:
    return CheckpointError(
        f"{source.name}: these pickled weights are not read without torch: {reason}. Use --engine torch if you trust "
        "the repository, or convert them to safetensors once.",
        param=source.name,
    )
