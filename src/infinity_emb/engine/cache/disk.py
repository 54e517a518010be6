"""Entries in an SQLite file, shared by processes and bounded in number."""

from __future__ import annotations

import logging
import sqlite3
import struct
import threading
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.engine.cache.entry import Entry
from infinity_emb.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_log = logging.getLogger("infinity_emb")
_HEAD = struct.Struct("<I?")
_TABLE = """
CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL, used INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS entries_used ON entries (used);
CREATE TABLE IF NOT EXISTS clock (now INTEGER NOT NULL);
INSERT INTO clock (now) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM clock);
"""
BUSY_TIMEOUT_S = 5.0
# Trimming looks at the count only now and then; it drops a twentieth at once.
TRIM_EVERY_WRITES = 64
QUERY_KEYS = 500  # SQLite allows 999 variables in old builds


class DiskCache:
    """One file in WAL mode: several processes may read and write it at once.

    Args:
        path: The file; its folder is made.
        limit_entries: Roughly how many entries are kept.

    Raises:
        StorageError: The file cannot be opened or is no cache.
    """

    def __init__(self, path: Path, limit_entries: int) -> None:
        self._path = path
        self._limit_entries = limit_entries
        self._writes = 0
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, check_same_thread=False)
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.executescript(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"The vector cache {path.name} cannot be opened ({error}). Choose a writable folder with "
                "--cache-folder, delete the file if it is damaged, or leave --vector-disk-cache off.",
                param="vector_disk_cache",
            ) from error

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Entry]:
        """The entries that are there. A cache that fails to read is a cache without the entry, and is logged."""
        found: dict[bytes, Entry] = {}
        try:
            with self._lock:
                for start in range(0, len(keys), QUERY_KEYS):
                    part = list(keys[start : start + QUERY_KEYS])
                    marks = ",".join("?" * len(part))
                    rows = self._connection.execute(
                        f"SELECT key, value FROM entries WHERE key IN ({marks})",  # noqa: S608 - only question marks
                        part,
                    )
                    found.update((bytes(key), _read(value)) for key, value in rows)
        except sqlite3.Error as error:
            _log.warning("the vector cache %s cannot be read: %s", self._path.name, error)
        return found

    def put(self, entries: Iterable[tuple[bytes, Entry]]) -> None:
        """Keep entries; one transaction. A full disk costs the entries, not the request, and is logged."""
        try:
            with self._lock, self._connection:
                (now,) = self._connection.execute("UPDATE clock SET now = now + 1 RETURNING now").fetchone()
                self._connection.executemany(
                    "INSERT OR REPLACE INTO entries (key, value, used) VALUES (?, ?, ?)",
                    [(key, _HEAD.pack(e.tokens, e.truncated) + e.row.tobytes(), now) for key, e in entries],
                )
                self._writes += 1
                if self._writes % TRIM_EVERY_WRITES == 1:
                    self._trim()
        except sqlite3.Error as error:
            _log.warning("the vector cache %s cannot be written: %s", self._path.name, error)

    def __len__(self) -> int:
        with self._lock:
            (count,) = self._connection.execute("SELECT count(*) FROM entries").fetchone()
        return int(count)

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            self._connection.close()

    def _trim(self) -> None:
        (count,) = self._connection.execute("SELECT count(*) FROM entries").fetchone()
        surplus = count - self._limit_entries
        if surplus > 0:
            self._connection.execute(
                "DELETE FROM entries WHERE key IN (SELECT key FROM entries ORDER BY used LIMIT ?)",
                (surplus + self._limit_entries // 20,),
            )


def _read(value: bytes) -> Entry:
    tokens, truncated = _HEAD.unpack_from(value)
    return Entry(np.frombuffer(value, np.float32, offset=_HEAD.size), tokens, truncated)
