"""A lock between processes that the operating system releases when its holder dies."""

from __future__ import annotations

import errno
import logging
import sys
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

logger = logging.getLogger(__name__)

_BUSY = frozenset({errno.EACCES, errno.EAGAIN, errno.EDEADLK})
_RETRY_S = 0.2  # Windows only: it has no blocking lock without a limit of ten seconds

if sys.platform == "win32":
    import msvcrt

    def _acquire(file: IO[bytes], *, wait: bool) -> bool:
        while True:
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError as error:
                if error.errno not in _BUSY:
                    raise
            else:
                return True
            if not wait:
                return False
            time.sleep(_RETRY_S)

else:
    import fcntl

    def _acquire(file: IO[bytes], *, wait: bool) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno not in _BUSY:
                raise
            return False
        return True


@contextmanager
def exclusive(path: Path, *, waiting: str) -> Iterator[bool]:
    """Hold a lock file; yields False where the file system has no locks.

    The file stays behind: removing it would let two processes lock two different files of the same name.
    A killed holder leaves no lock, because the lock belongs to its open file and not to the name.

    Args:
        path: The lock file; its folder exists.
        waiting: Said once if another process holds the lock.
    """
    with path.open("ab") as file:
        try:
            if not _acquire(file, wait=False):
                logger.info(waiting)
                _acquire(file, wait=True)
        except OSError as error:
            if error.errno not in {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}:
                raise
            logger.debug("no file locks in %s: %s", path.parent, error)
            yield False
            return
        yield True
