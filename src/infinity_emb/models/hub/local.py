"""A model that already lies in a folder on this machine."""

from __future__ import annotations

from pathlib import Path

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.hub.names import is_path_like

ENTRY_FILES = ("modules.json", "config.json")


def local_checkpoint(model_id: str, revision: str | None) -> Checkpoint | None:
    """The folder that `model_id` names, or None if it can be a repository id.

    Raises:
        CheckpointError: It can only be a folder, and there is none or it holds no model.
    """
    path_like = is_path_like(model_id)
    folder = _expanded(model_id)
    if _is_folder(folder):
        if any((folder / name).is_file() for name in ENTRY_FILES):
            ignored = "" if revision is None else " (revision ignored)"
            return Checkpoint(path=folder.absolute(), model_id=model_id, source=f"local folder{ignored}")
        if path_like:
            raise CheckpointError(
                f"The folder {folder} holds no model: it has neither config.json nor modules.json. "
                "Give the folder that holds them.",
                param="model_id",
            )
    if not path_like:
        return None
    if "://" in model_id:
        raise CheckpointError(
            f"{model_id!r} is a URL. Give the id of the repository (owner/name) and, for another hub, "
            "its address in HF_ENDPOINT.",
            param="model_id",
        )
    if _is_file(folder):
        raise CheckpointError(f"{folder} is a file. Give the folder that holds config.json.", param="model_id")
    raise CheckpointError(
        f"There is no folder {folder} (looked up from {Path.cwd()}). "
        "Check the path, or give a repository id of the form owner/name.",
        param="model_id",
    )


def _expanded(model_id: str) -> Path:
    try:
        return Path(model_id).expanduser()
    except RuntimeError:  # no home folder known for "~"
        return Path(model_id)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a text no file system accepts as a name names no folder
        return False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
