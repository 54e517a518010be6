"""Hot path. The most recently used entries, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.engine.cache.entry import Entry

ENTRY_OVERHEAD_BYTES = 300  # key, objects and the links of the dictionary, measured


class MemoryCache:
    """Least recently used goes first. Used by one thread (the engine's event loop).

    Args:
        limit_bytes: Memory it may take.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[bytes, Entry] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes) -> Entry | None:
        """The entry, which becomes the most recent one."""
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: bytes, entry: Entry) -> None:
        """Keep an entry; drops others if there is no room."""
        if key in self._entries:
            return
        self._entries[key] = entry
        self.size_bytes += entry.row.nbytes + ENTRY_OVERHEAD_BYTES
        while self.size_bytes > self._limit_bytes:
            _, dropped = self._entries.popitem(last=False)
            self.size_bytes -= dropped.row.nbytes + ENTRY_OVERHEAD_BYTES
