"""Stamps of what computes a result: versions of libraries and the state of our own sources, for names of kept files."""

from __future__ import annotations

import functools
import importlib.metadata
from pathlib import Path


@functools.cache
def library_version(name: str) -> str:
    """Name and version of an installed distribution, read without importing it."""
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return f"{name} not installed"


@functools.cache
def source_stamps(*folders: str) -> tuple[str, ...]:
    """Size and time of change of every source file in folders of the package, such as `models/graph`."""
    root = Path(__file__).parents[1]
    stamps = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            status = path.stat()
            stamps.append(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}")
    return tuple(stamps)
