"""Which files of a repository a server needs: configuration, tokenizer and weights, never code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.names import is_safe_file_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_TEXT_SUFFIXES = (".json", ".txt", ".model", ".jinja")
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_PICKLE = re.compile(r"(?:pytorch_)?model.*\.(?:bin|pt|pth)")
_ONNX_PLACES = ("onnx/model.onnx", "model.onnx")
_NOT_NEEDED = re.compile(r".*\.bin\.index\.json|trainer_state\.json|flax_model.*|tf_model.*")


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


def select(names: Collection[str], folders: Collection[str] = (), *, with_onnx: bool = False) -> tuple[str, ...]:
    """Pick the files to fetch.

    Args:
        names: Every file of the repository, `/`-separated.
        folders: Folders of its modules.
        with_onnx: Take the ONNX graph too, even if there are safetensors.

    Returns:
        The chosen names, sorted.

    Raises:
        CheckpointError: There are no weights, or only ones that would run code when they are read.
    """
    onnx = _onnx_files(names)
    chosen = set(onnx) if with_onnx else set()
    weights: set[str] = set()
    for folder in ("", *folders):
        inside = [name for name in names if _belongs(name, folder)]
        chosen.update(name for name in inside if _is_text(name))
        safetensors = _safetensors(inside)
        weights.update(safetensors)
        if not safetensors and not onnx:
            _refuse_pickle(inside)
    if not weights:
        weights = onnx
    if not weights:
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


def _onnx_files(names: Collection[str]) -> set[str]:
    """The float32 graph with the files that hold its weights."""
    for place in _ONNX_PLACES:
        if place in names:
            return {name for name in names if name == place or name.startswith((f"{place}_data", f"{place}.data"))}
    return set()


def _refuse_pickle(names: Iterable[str]) -> None:
    pickled = next((name for name in names if _PICKLE.fullmatch(_base(name))), None)
    if pickled is not None:
        raise CheckpointError(
            f"The weights are only there as {pickled}, a pickle file that can run code when it is read; it was not "
            "fetched. Pass --revision with a revision that has model.safetensors (hubs often offer one as refs/pr/N), "
            "or convert the model once and give its folder.",
            param=pickled,
        )


def _base(name: str) -> str:
    return name.rpartition("/")[2]
