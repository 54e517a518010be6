"""Finds the files that hold weights and checks that they are whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models import pickled
from infinity_emb.models.safetensors_file import read_header
from infinity_emb.models.spec.files import check_inside, join, missing

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.safetensors_file import TensorInfo
    from infinity_emb.models.spec.files import Repository

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
ONNX_FILES = ("onnx/model.onnx", "model.onnx")


def find_weights(repository: Repository, folder: str) -> tuple[Path, ...]:
    """Weights of the transformer in `folder`: safetensors, else pickles if allowed, else none if there is an ONNX file.

    Raises:
        CheckpointError: A file is missing or broken, or only pickles are there and they are not allowed.
    """
    single = repository.path(folder, SINGLE)
    if single.is_file():
        read_header(single)
        return (single,)
    if repository.path(folder, INDEX).is_file():
        return _shards(repository, folder, INDEX, check=True)
    pickled = _pickled(repository, folder)
    if pickled:
        return pickled
    if any(repository.path(folder, name).is_file() for name in ONNX_FILES):
        return ()
    raise missing(join(folder, SINGLE), f"Supported weights: {SINGLE}, {INDEX} with its shards")


def find_module_weights(repository: Repository, folder: str) -> Path:
    """The weights file of a small module such as Dense.

    Raises:
        CheckpointError: As `find_weights`.
    """
    path = repository.path(folder, SINGLE)
    if path.is_file():
        return path
    pickled = _pickled(repository, folder)
    if pickled:
        return pickled[0]
    raise missing(join(folder, SINGLE), "The module's weights belong there")


def check_tensor(path: Path, shown: str, name: str, shape: tuple[int, ...]) -> None:
    """Raise unless the file (shown as `shown`) holds the tensor in this shape. Pickles are not looked into."""
    if is_pickle(path):
        return
    header = read_header(path)
    if name not in header:
        raise CheckpointError(
            f"{shown}: tensor {name!r} is missing; it holds {', '.join(header) or 'nothing'}. Fetch it again.",
            param=shown,
        )
    if header[name].shape != shape:
        raise CheckpointError(
            f"{shown}: tensor {name!r} has shape {list(header[name].shape)}, the configuration says {list(shape)}.",
            param=shown,
        )


def all_tensors(weights: tuple[Path, ...]) -> dict[str, TensorInfo]:
    """Name → place over all shards; empty for pickles."""
    tensors: dict[str, TensorInfo] = {}
    for path in weights:
        if not is_pickle(path):
            tensors.update(read_header(path))
    return tensors


def tensor_shapes(weights: tuple[Path, ...]) -> dict[str, tuple[int, ...]]:
    """Name → shape over all files, pickles included; nothing of those is run.

    Raises:
        CheckpointError: A pickle holds something else than tensors.
    """
    shapes = {name: info.shape for name, info in all_tensors(weights).items()}
    for path in filter(is_pickle, weights):
        shapes.update(pickled.read_shapes(path))
    return shapes


def is_pickle(path: Path) -> bool:
    """Whether a weights file is a pickle."""
    return path.suffix != ".safetensors"


def _shards(repository: Repository, folder: str, index_name: str, *, check: bool) -> tuple[Path, ...]:
    """The files that an index names, each looked for and, for safetensors, checked against the index."""
    index = repository.config(join(folder, index_name), required=True)
    names = index.section("weight_map").data
    if not names or not all(isinstance(file, str) for file in names.values()):
        raise index.error("weight_map", "expected an object of tensor name to file name. Download the file again.")
    paths = []
    for file in dict.fromkeys(names.values()):
        path = repository.path(folder, check_inside(index.name, "weight_map", file))
        if not path.is_file():
            raise missing(join(folder, file), f"{index_name} names it as a shard")
        if check:
            held = read_header(path)
            absent = [tensor for tensor, place in names.items() if place == file and tensor not in held]
            if absent:
                raise index.error("weight_map", f"{file} does not hold {absent[0]!r}. Download the model again.")
        paths.append(path)
    return tuple(paths)


def _pickled(repository: Repository, folder: str) -> tuple[Path, ...]:
    """Pickled weights, if there are any and they are allowed."""
    found = next((name for name in PICKLES if repository.path(folder, name).is_file()), None)
    if found is None:
        return ()
    if not repository.allow_pickle:
        raise CheckpointError(
            f"{join(folder, found)}: these weights exist only as a pickle, which can run code when it is loaded. "
            f"Use a revision with {SINGLE}, convert them with safetensors, "
            "or allow pickles with --allow-pickle if you trust the repository.",
            param=join(folder, found),
        )
    if found.endswith(".json"):
        return _shards(repository, folder, found, check=False)
    return (repository.path(folder, found),)
