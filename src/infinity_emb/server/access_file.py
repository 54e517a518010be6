"""Keys in a file that may change while the server runs."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from infinity_emb.errors import ConfigurationError
from infinity_emb.server.access_grant import read_grants

if TYPE_CHECKING:
    from infinity_emb.server.access_grant import Grant

logger = logging.getLogger("infinity_emb")

LOOK_EVERY_S = 1.0


class KeyFile:
    """Reads the file again when it changes; a file that is broken or gone by then leaves the keys as they were.

    Args:
        path: The file.

    Raises:
        ConfigurationError: It cannot be read, or a line is wrong.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._seen = self._version()
        self._grants = read_grants(self._text())
        self._looked_s = time.monotonic()

    def grants(self) -> tuple[Grant, ...]:
        """As the file stands now, or stood a second ago."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = now_s
            self._look()
        return self._grants

    def _look(self) -> None:
        try:
            version = self._version()
            if version == self._seen:
                return
            self._seen = version
            self._grants = read_grants(self._text())
        except ConfigurationError as error:
            logger.error("The API keys stay as they were: %s", error)  # noqa: TRY400 - the text says all
            return
        logger.info("Read %d API keys again.", len(self._grants))

    def _version(self) -> tuple[int, int, int]:
        """Differs after every change, also when the file is replaced."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise self._unreadable(error) from error
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _text(self) -> str:
        try:
            return self._path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ConfigurationError:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text"
        return ConfigurationError(f"The key file {str(self._path)!r} cannot be read: {reason}.", param="api-key-file")
