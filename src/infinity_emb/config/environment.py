"""The only reader of the process environment."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def environ() -> Mapping[str, str]:
    """The variables as they are now."""
    return os.environ


def home_folder() -> Path:
    """The user's home, or the temporary folder for a container user who has none."""
    try:
        return Path.home()
    except RuntimeError:  # no HOME and no entry in the user list
        return Path(tempfile.gettempdir())


def folder_variable(variables: Mapping[str, str], *names: str) -> Path | None:
    """The folder that the first set variable names, `~` being the home folder; None if none is set."""
    value = next((said for name in names if (said := variables.get(name, "").strip())), None)
    if value is None:
        return None
    return home_folder() / value[1:].lstrip("/\\") if value == "~" or value.startswith(("~/", "~\\")) else Path(value)


def user_cache(variables: Mapping[str, str]) -> Path:
    """Where programs of this user keep what can be made again."""
    return folder_variable(variables, "XDG_CACHE_HOME") or home_folder() / ".cache"


def own_cache(variables: Mapping[str, str]) -> Path:
    """Folder for what this package downloads and compiles.

    `.infinity_cache` in `INFINITY_HOME` or in a set `HF_HOME`, else `infinity_emb` in the user's cache folder.
    """
    parent = folder_variable(variables, "INFINITY_HOME", "HF_HOME")
    if parent is not None:
        return parent / ".infinity_cache"
    local = folder_variable(variables, "LOCALAPPDATA") if sys.platform == "win32" else None
    return (local or user_cache(variables)) / "infinity_emb"
