"""Hot path. Answers inputs from the caches, shares computations among identical ones in flight, computes the rest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from infinity_emb.errors import InfinityError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from infinity_emb.engine.cache.disk import DiskCache
    from infinity_emb.engine.cache.entry import Entry
    from infinity_emb.engine.cache.memory import MemoryCache

    Compute: TypeAlias = Callable[[list[int]], Awaitable[list[Entry]]]


@dataclass(slots=True)
class CacheCounts:
    """How inputs were answered since the start.

    Attributes:
        memory_hits: From memory.
        disk_hits: From disk.
        shared: By waiting for the same input of another request, or of the same one.
        misses: By computing.
    """

    memory_hits: int = 0
    disk_hits: int = 0
    shared: int = 0
    misses: int = 0


class Reuse:
    """Used by one event loop.

    Args:
        memory: Recent entries, or None.
        disk: Older ones, or None.
    """

    def __init__(self, memory: MemoryCache | None, disk: DiskCache | None) -> None:
        self._memory = memory
        self._disk = disk
        self._in_flight: dict[bytes, asyncio.Future[Entry]] = {}
        self.counts = CacheCounts()

    async def entries(self, keys: Sequence[bytes], compute: Compute) -> list[Entry]:
        """Entries of all keys, in order.

        Args:
            keys: One an input.
            compute: Computes the inputs at these positions; called at most once, with each distinct key once.

        Raises: whatever `compute` raised for the caller's own inputs. The failure of another request that computed
            the same input is not passed on: the input is computed again.
        """
        found, missing = self._look_up(keys)
        if missing and self._disk is not None:
            missing = await self._look_on_disk(self._disk, found, missing)
        waiting = self._computed_elsewhere(missing)
        own = {key: position for key, position in missing.items() if key not in waiting}
        self.counts.shared += len(keys) - len(own) - sum(1 for key in keys if key in found)
        self.counts.misses += len(own)
        if own:
            found.update(await self._compute(own, compute))
        failed: dict[bytes, int] = {}
        for key, future in waiting.items():
            entry = await _shared(future)
            if entry is None:
                failed[key] = missing[key]
            else:
                found[key] = entry
        if failed:
            found.update(await self._compute(failed, compute))
        return [found[key] for key in keys]

    def close(self) -> None:
        """Close the file of the disk cache."""
        if self._disk is not None:
            self._disk.close()

    def _computed_elsewhere(self, keys: Iterable[bytes]) -> dict[bytes, asyncio.Future[Entry]]:
        """Computations of these keys that other requests of this event loop have begun."""
        loop = asyncio.get_running_loop()
        begun = ((key, self._in_flight.get(key)) for key in keys)
        return {key: future for key, future in begun if future is not None and future.get_loop() is loop}

    def _look_up(self, keys: Sequence[bytes]) -> tuple[dict[bytes, Entry], dict[bytes, int]]:
        """Entries in memory, and for every other distinct key the first position that has it."""
        found: dict[bytes, Entry] = {}
        missing: dict[bytes, int] = {}
        for position, key in enumerate(keys):
            entry = self._memory.get(key) if self._memory is not None else None
            if entry is not None:
                found[key] = entry
                self.counts.memory_hits += 1
            else:
                missing.setdefault(key, position)
        return found, missing

    async def _look_on_disk(
        self, disk: DiskCache, found: dict[bytes, Entry], missing: dict[bytes, int]
    ) -> dict[bytes, int]:
        loop = asyncio.get_running_loop()
        there = await loop.run_in_executor(None, disk.get, list(missing))
        self.counts.disk_hits += len(there)
        found.update(there)
        if self._memory is not None:
            for key, entry in there.items():
                self._memory.put(key, entry)
        return {key: position for key, position in missing.items() if key not in there}

    async def _compute(self, own: dict[bytes, int], compute: Compute) -> dict[bytes, Entry]:
        loop = asyncio.get_running_loop()
        futures = {key: loop.create_future() for key in own if key not in self._in_flight}
        self._in_flight.update(futures)
        try:
            made = dict(zip(own, await compute(list(own.values())), strict=True))
        except BaseException as error:
            for future in futures.values():
                if isinstance(error, Exception):
                    future.set_exception(error)
                    future.exception()  # nobody may be waiting; that is no fault
                else:
                    future.cancel()
            raise
        else:
            for key, future in futures.items():
                future.set_result(made[key])
        finally:
            for key in futures:
                del self._in_flight[key]
        if self._memory is not None:
            for key, entry in made.items():
                self._memory.put(key, entry)
        if self._disk is not None:
            await loop.run_in_executor(None, self._disk.put, list(made.items()))
        return made


async def _shared(future: asyncio.Future[Entry]) -> Entry | None:
    """What another request computed, or None if it failed or was given up."""
    try:
        return await asyncio.shield(future)
    except (InfinityError, asyncio.CancelledError):
        if future.cancelled() or (future.done() and future.exception() is not None):
            return None
        raise  # it is this caller who was cancelled, not the one it waited for
