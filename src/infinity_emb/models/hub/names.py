"""Which names are folders, which are repositories, and which file names are safe to write."""

from __future__ import annotations

import re

from infinity_emb.errors import CheckpointError

_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPOSITORY_ID = re.compile(rf"(?:{_PART}/)?{_PART}")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+@/-]{0,254}")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_DRIVE = re.compile(r"[A-Za-z]:")


def is_path_like(model_id: str) -> bool:
    """True if the text can only mean a folder: `./x`, `../x`, `/x`, `~/x`, `a/b/c`, or a Windows path."""
    return (
        model_id in {".", "..", "~"}
        or model_id.startswith(("./", "../", "/", "~"))
        or model_id.endswith("/")
        or "\\" in model_id
        or _DRIVE.match(model_id) is not None
        or model_id.count("/") > 1
    )


def check_repository_id(model_id: str) -> None:
    """Refuse what cannot be the id of a hub repository.

    Raises:
        CheckpointError: The id has a wrong form; the message says which form is right.
    """
    if _REPOSITORY_ID.fullmatch(model_id) and ".." not in model_id and "--" not in model_id:
        return
    raise CheckpointError(
        f"{model_id!r} is neither a folder on this machine nor the id of a hub repository. "
        "Write owner/name (letters, digits, '-', '_' and '.'), or the path of a folder that holds config.json.",
        param="model_id",
    )


def check_revision(revision: str) -> None:
    """Refuse what cannot be a branch, a tag or a commit.

    Raises:
        CheckpointError: The revision has a wrong form.
    """
    if _REVISION.fullmatch(revision) and ".." not in revision and "//" not in revision:
        return
    raise CheckpointError(
        f"{revision!r} is not a revision. Give a branch (main), a tag (v1.0), a commit, or refs/pr/1.", param="revision"
    )


def is_commit(revision: str) -> bool:
    """True if the revision is a full commit, which never changes."""
    return _COMMIT.fullmatch(revision) is not None


def is_safe_file_name(name: str) -> bool:
    """True if a relative, `/`-separated file name stays inside the folder it is written to, on every system."""
    parts = name.split("/")
    return bool(name) and not (
        any(part in {"", ".", ".."} for part in parts)
        or "\\" in name
        or any(ord(character) < 32 for character in name)
        or _DRIVE.match(name) is not None
    )
