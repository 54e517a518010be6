"""Stamps of what computes a result: versions of libraries and the state of our own sources, for names of kept files."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path

# What installers leave beside a package (PEP 376, PEP 427). Importing and asking the standard library's reader
# of its contents takes 22 to 36 ms of processor time at every start, this takes 1.
_RECORD = re.compile(r"(.+?)-(\d[^-]*)(?:-py[^-]*)?\.(?:dist|egg)-info")


def library_version(name: str) -> str:
    """Name and version of an installed distribution, read without importing it."""
    version = _installed(tuple(sys.path)).get(name)
    return f"{name} not installed" if version is None else f"{name} {version}"


@functools.cache
def _installed(folders: tuple[str, ...]) -> dict[str, str]:
    """Versions of what lies in the folders, by names as they are imported; the first folder wins."""
    versions: dict[str, str] = {}
    for folder in folders:
        try:
            entries = os.listdir(folder)  # noqa: PTH208 - names are all that is needed, of hundreds of entries
        except OSError:  # a path that does not exist, or an archive
            continue
        for entry in entries:
            found = _RECORD.fullmatch(entry) if entry.endswith("-info") else None
            if found is not None:
                versions.setdefault(re.sub(r"[-.]+", "_", found[1]).lower(), found[2])
    return versions


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
