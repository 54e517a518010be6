"""Which files of a repository a server needs: configuration, tokenizer and weights, never code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.names import is_safe_file_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_TEXT_SUFFIXES = (".json", ".txt", ".model", ".jinja", "artifact.metadata")  # the last one is ColBERT's
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLE = re.compile(r"(?:pytorch_)?model.*\.(?:bin|pt|pth)")
_PICKLE_INDEX = re.compile(r"pytorch_model\.bin\.index\.json")
_ONNX_PLACES = ("onnx/model.onnx", "model.onnx")
# BGE-M3's heads beside the dense vector. The pickles are small, and are fetched so that a server can say what it leaves
# unread; they are read only with `--allow-pickle`.
_HEADS = frozenset(f"{name}_linear.{ending}" for name in ("sparse", "colbert") for ending in ("pt", "safetensors"))
_NOT_NEEDED = re.compile(r".*\.bin\.index\.json|trainer_state\.json|flax_model.*|tf_model.*")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted beyond configuration, tokenizer and safetensors.

    Attributes:
        onnx: The repository's own float32 ONNX graph; without this it is taken only if there are no safetensors.
        onnx_file: One particular ONNX file.
        pickle: Weights that exist only as pickles, which can run code when they are read.
    """

    onnx: bool = False
    onnx_file: str | None = None
    pickle: bool = False


SAFE_FILES = Wanted()


def check_file_names(names: Iterable[str]) -> None:
    """Refuse a repository that would write outside its own folder.

    Raises:
        CheckpointError: A name is absolute, climbs up, or is not portable.
    """
    for name in names:
        if not is_safe_file_name(name):
            raise CheckpointError(
                f"The repository names a file {name!r}, which would lie outside its folder. Nothing was written; "
                "do not use this repository, and check HF_ENDPOINT if you set it.",
                param=name,
            )


def select(
    names: Collection[str], folders: Collection[str] = (), wanted: Wanted = SAFE_FILES, *, weightless: bool = False
) -> tuple[str, ...]:
    """Pick the files to fetch.

    Args:
        names: Every file of the repository, `/`-separated.
        folders: Folders of its modules.
        wanted: What else to take.
        weightless: The model has no weights.

    Returns:
        The chosen names, sorted.

    Raises:
        CheckpointError: There are no weights, or only pickled ones, or the wanted ONNX file does not exist.
    """
    onnx = next((files for place in _ONNX_PLACES if (files := _onnx_files(names, place))), set())
    weights = _wanted_onnx(names, wanted.onnx_file)
    chosen = set(onnx) if wanted.onnx else set()
    for folder in ("", *folders):
        inside = [name for name in names if _belongs(name, folder)]
        chosen.update(name for name in inside if _is_text(name) or _base(name) in _HEADS)
        safetensors = _safetensors(name for name in inside if _base(name) not in _HEADS)
        weights.update(safetensors)
        if not safetensors and not (onnx and not folder):  # the graph stands for the repository's own weights only
            weights.update(_pickled(inside, allowed=wanted.pickle))
    weights = weights or onnx
    if not weights and not weightless:
        raise CheckpointError(
            "The repository has no weights: neither *.safetensors nor onnx/model.onnx. "
            "Check the model id and the revision.",
            param="model.safetensors",
        )
    return tuple(sorted(chosen | weights))


def _belongs(name: str, folder: str) -> bool:
    """Files directly in the repository's own folder, or anywhere below a module's."""
    if not folder:
        return "/" not in name
    return name.startswith(f"{folder}/") and not {"onnx", "openvino"} & set(name[len(folder) + 1 :].split("/")[:-1])


def _is_text(name: str) -> bool:
    return name.endswith(_TEXT_SUFFIXES) and not _NOT_NEEDED.fullmatch(_base(name))


def _safetensors(names: Iterable[str]) -> set[str]:
    """Of each folder the plain file, else its shards, else what there is except a second copy of the same weights."""
    every = [name for name in names if name.endswith(".safetensors")]
    by_folder: dict[str, list[str]] = {}
    for name in every:
        by_folder.setdefault(name.rpartition("/")[0], []).append(name)
    chosen: set[str] = set()
    for inside in by_folder.values():
        plain = [name for name in inside if _base(name) == "model.safetensors"]
        shards = [name for name in inside if _SHARD.fullmatch(_base(name))]
        rest = [name for name in inside if not _base(name).startswith("consolidated")]
        chosen.update(plain or shards or rest or inside)
    return chosen


def _onnx_files(names: Collection[str], place: str) -> set[str]:
    """A graph with the files that hold its weights; empty if there is none."""
    data = (f"{place}_data", f"{place}.data")
    return {name for name in names if name == place or name.startswith(data)} if place in names else set()


def _wanted_onnx(names: Collection[str], onnx_file: str | None) -> set[str]:
    if onnx_file is None:
        return set()
    files = _onnx_files(names, onnx_file)
    if not files:
        available = ", ".join(sorted(name for name in names if name.endswith(".onnx"))) or "none"
        raise CheckpointError(
            f"The repository has no file {onnx_file}. ONNX files it has: {available}.", param=onnx_file
        )
    return files


def _pickled(names: Collection[str], *, allowed: bool) -> set[str]:
    """Pickled weights, if somebody said that they may be read."""
    pickled = {name for name in names if _PICKLE.fullmatch(_base(name))}
    if pickled and not allowed:
        first = min(pickled)
        raise CheckpointError(
            f"The weights are only there as {first}, a pickle file that can run code when it is read; it was not "
            "fetched. Pass --revision with a revision that has model.safetensors (hubs often offer one as refs/pr/N), "
            "convert the model once and give its folder, or pass --allow-pickle if you trust the repository.",
            param=first,
        )
    return pickled | {name for name in names if pickled and _PICKLE_INDEX.fullmatch(_base(name))}


def _base(name: str) -> str:
    return name.rpartition("/")[2]
