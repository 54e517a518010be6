"""What `modules.json` says about which folders and files a repository must have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.names import is_safe_file_name

if TYPE_CHECKING:
    from collections.abc import Collection

MODULES_FILE = "modules.json"
_COPIES = frozenset({"onnx", "openvino"})  # folders of converted copies, which are no modules
_ROUTERS = ("Router", "Asym")
_OF_MODULES = (["config.json"], ["model.safetensors"])
_WEIGHTLESS = frozenset({"BoW", "Dropout", "Normalize"})
# Last part of a module's type → files without which it cannot work; other types may do without any.
_REQUIRED = {
    "Transformer": ("config.json",),
    "CLIPModel": ("config.json", "preprocessor_config.json"),
    "Pooling": ("config.json",),
    "Dense": ("config.json", "model.safetensors"),
    "WeightedLayerPooling": ("config.json",),
    "SparseAutoEncoder": ("config.json", "model.safetensors"),
    "LayerNorm": ("config.json", "model.safetensors"),
    "WordWeights": ("config.json",),
    "WordEmbeddings": ("wordembedding_config.json", "whitespacetokenizer_config.json"),
    "CNN": ("cnn_config.json",),
    "LSTM": ("lstm_config.json",),
    "BoW": ("config.json",),
}


def _modules(modules_json: bytes) -> list[tuple[str, str]]:
    """Folder (without the final slash) and type of each module."""
    try:
        entries = json.loads(modules_json)
        modules = [(str(entry["path"]).strip("/"), str(entry["type"]).rpartition(".")[2]) for entry in entries]
        modules = [("" if folder == "." else folder, kind) for folder, kind in modules]  # as model2vec writes the root
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(
            f"{MODULES_FILE} is not a list of modules with a path and a type each ({error!r}). "
            "Try another revision of the repository.",
            param=MODULES_FILE,
        ) from error
    for folder, _ in modules:
        if folder and not is_safe_file_name(folder):
            raise CheckpointError(
                f"{MODULES_FILE} names the folder {folder!r}, which lies outside the repository. "
                "Do not use this repository.",
                param=MODULES_FILE,
            )
    return modules


def module_folders(modules_json: bytes, names: Collection[str] = ()) -> tuple[str, ...]:
    """Folders of the modules, without the repository's own.

    Args:
        modules_json: The file.
        names: Every file of the repository; the modules of a Router are the folders in its own that hold a config.json
            or weights.

    Raises:
        CheckpointError: The file is not a list of modules, or a folder lies outside the repository.
    """
    modules = _modules(modules_json)
    folders = [folder for folder, _ in modules if folder]
    for start in (f"{folder}/" if folder else "" for folder, kind in modules if kind in _ROUTERS):
        inside = (name[len(start) :].split("/") for name in names if name.startswith(start))
        folders += [start + parts[0] for parts in inside if parts[1:] in _OF_MODULES and parts[0] not in _COPIES]
    return tuple(dict.fromkeys(folders))


def is_weightless(modules_json: bytes) -> bool:
    """Whether the model has no weights beside its configuration: a bag of words that is as it is, or normalised.

    Raises:
        CheckpointError: See `module_folders`.
    """
    kinds = {kind for _, kind in _modules(modules_json)}
    return "BoW" in kinds and kinds <= _WEIGHTLESS


def required_files(modules_json: bytes) -> tuple[str, ...]:
    """Files that the modules in folders of their own cannot do without.

    Raises:
        CheckpointError: See `module_folders`.
    """
    return tuple(
        f"{folder}/{name}" for folder, kind in _modules(modules_json) if folder for name in _REQUIRED.get(kind, ())
    )
