"""Writing to disk: errors a person can act on, and files that are either whole or absent."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from infinity_emb.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT}) if hasattr(errno, "EDQUOT") else frozenset({errno.ENOSPC})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_MEBIBYTE = 1024 * 1024


def storage_error(error: BaseException, folder: Path) -> StorageError | None:
    """Turn an error of the operating system into ours; None if it is not about the disk."""
    if not isinstance(error, OSError):
        return None
    if error.errno in _FULL:
        return StorageError(
            f"The disk that holds {folder} is full ({error}). Free some space, or keep the models elsewhere by "
            "setting HF_HOME (hub repositories) or INFINITY_HOME (default model). Starting again goes on from there.",
            param=str(folder),
        )
    if error.errno in _FORBIDDEN:
        return StorageError(
            f"{folder} cannot be written ({error}). Make it writable for this user, put the model there beforehand, "
            "or keep the models elsewhere by setting HF_HOME (hub repositories) or INFINITY_HOME (default model).",
            param=str(folder),
        )
    return None


@contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Translate errors about the disk under `folder`; every other error passes."""
    try:
        yield
    except OSError as error:
        translated = storage_error(error, folder)
        if translated is None:
            raise
        raise translated from error


def check_free_space(folder: Path, needed_bytes: int) -> None:
    """Refuse to begin a download that cannot fit.

    Raises:
        StorageError: Less than `needed_bytes` is free.
    """
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise StorageError(
            f"{folder} has {free_bytes // _MEBIBYTE} MiB free, {needed_bytes // _MEBIBYTE} MiB are needed. "
            "Free some space, or keep the models elsewhere by setting INFINITY_HOME.",
            param=str(folder),
        )


def write_whole(path: Path, *parts: bytes | memoryview) -> None:
    """Write a file so that a reader sees the old content or the new, never a part; a failure leaves no draft."""
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.draft")
    try:
        with draft.open("wb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can do that."""
    if os.name == "nt":  # Windows cannot open a folder for syncing
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
