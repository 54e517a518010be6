"""Reuse of finished vectors."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from infinity_emb.engine.cache import Entry, KeyMaker, Reuse
from infinity_emb.engine.cache.disk import DiskCache
from infinity_emb.engine.cache.memory import ENTRY_OVERHEAD_BYTES, MemoryCache
from infinity_emb.errors import BackendError, StorageError
from infinity_emb.types import TextOptions


def entry(number: float, width: int = 4) -> Entry:
    return Entry(np.full(width, number, np.float32), 3, truncated=False)


def key(number: int) -> bytes:
    return number.to_bytes(16, "big")


class Model:
    """Counts what it is asked to compute; the answer for a key is its number."""

    def __init__(self) -> None:
        self.computed: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    def compute(self, numbers: list[int]):
        async def run(positions: list[int]) -> list[Entry]:
            asked = [numbers[position] for position in positions]
            self.computed.append(asked)
            await self.gate.wait()
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            return [entry(number) for number in asked]

        return run

    async def ask(self, reuse: Reuse, numbers: list[int]) -> list[float]:
        made = await reuse.entries([key(number) for number in numbers], self.compute(numbers))
        return [float(item.row[0]) for item in made]


def test_what_was_computed_once_comes_from_memory():
    async def run():
        reuse, model = Reuse(MemoryCache(10_000), None), Model()
        assert await model.ask(reuse, [1, 2]) == [1, 2]
        assert await model.ask(reuse, [2, 3, 1]) == [2, 3, 1]
        assert model.computed == [[1, 2], [3]]
        assert (reuse.counts.memory_hits, reuse.counts.misses) == (2, 3)

    asyncio.run(run())


def test_identical_inputs_of_one_request_are_computed_once():
    async def run():
        model = Model()
        assert await model.ask(Reuse(None, None), [5, 5, 6, 5]) == [5, 5, 6, 5]
        assert model.computed == [[5, 6]]

    asyncio.run(run())


def test_identical_requests_in_flight_cost_one_computation():
    async def run():
        reuse, model = Reuse(None, None), Model()
        model.gate.clear()
        asked = [asyncio.ensure_future(model.ask(reuse, [7, 8])) for _ in range(20)]
        await asyncio.sleep(0)
        model.gate.set()
        assert await asyncio.gather(*asked) == [[7, 8]] * 20
        assert model.computed == [[7, 8]]
        assert reuse.counts.shared == 38
        assert await model.ask(reuse, [7]) == [7]
        assert model.computed == [[7, 8], [7]]

    asyncio.run(run())


def test_the_failure_of_another_request_is_not_passed_on():
    async def run():
        reuse, model = Reuse(None, None), Model()
        model.gate.clear()
        first = asyncio.ensure_future(model.ask(reuse, [1]))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(model.ask(reuse, [1, 2]))
        await asyncio.sleep(0)
        model.error = BackendError("broken")
        model.gate.set()
        with pytest.raises(BackendError):
            await first
        # the error hit whichever computation asked first: the second computes 1 for itself
        assert await second == [1, 2]

    asyncio.run(run())


def test_a_cancelled_request_does_not_cancel_those_who_wait_for_it():
    async def run():
        reuse, model = Reuse(None, None), Model()
        model.gate.clear()
        first = asyncio.ensure_future(model.ask(reuse, [1]))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(model.ask(reuse, [1]))
        await asyncio.sleep(0)
        first.cancel()
        model.gate.set()
        assert await second == [1]
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(run())


def test_memory_stays_within_its_limit_and_drops_the_oldest():
    size = entry(0).row.nbytes + ENTRY_OVERHEAD_BYTES
    memory = MemoryCache(3 * size)
    for number in range(3):
        memory.put(key(number), entry(number))
    assert memory.get(key(0)) is not None
    memory.put(key(3), entry(3))
    assert [memory.get(key(number)) is not None for number in range(4)] == [True, False, True, True]
    assert memory.size_bytes <= 3 * size


def test_disk_entries_survive_and_are_shared(tmp_path):
    first, second = (DiskCache(tmp_path / "cache.sqlite", 1000) for _ in range(2))
    first.put([(key(1), Entry(np.arange(4, dtype=np.float32), 9, truncated=True))])
    found = second.get([key(1), key(2)])
    assert list(found) == [key(1)]
    assert (found[key(1)].row.tolist(), found[key(1)].tokens, found[key(1)].truncated) == ([0, 1, 2, 3], 9, True)
    first.close()
    second.close()


def test_disk_is_trimmed(tmp_path):
    disk = DiskCache(tmp_path / "cache.sqlite", 100)
    for number in range(300):
        disk.put([(key(number), entry(number))])
    assert len(disk) <= 100 + 64
    assert disk.get([key(299)])
    disk.close()


def test_reuse_reads_the_disk_before_it_computes(tmp_path):
    async def run():
        disk = DiskCache(tmp_path / "cache.sqlite", 100)
        reuse, model = Reuse(MemoryCache(10_000), disk), Model()
        await model.ask(reuse, [1])
        again = Reuse(None, disk)
        assert await model.ask(again, [1, 2]) == [1, 2]
        assert model.computed == [[1], [2]]
        assert again.counts.disk_hits == 1
        again.close()

    asyncio.run(run())


def test_a_file_that_is_no_cache_is_refused_by_name(tmp_path):
    (tmp_path / "cache.sqlite").write_bytes(b"not a database, long enough to be looked at" * 100)
    with pytest.raises(StorageError, match=r"cache\.sqlite"):
        DiskCache(tmp_path / "cache.sqlite", 100)


def test_keys_differ_by_model_prompt_options_and_kind():
    plain = TextOptions()
    keys = [
        KeyMaker("a").keys(["x", [120]], "", plain),
        KeyMaker("b").keys(["x", [120]], "", plain),
        KeyMaker("a").keys(["x", [120]], "p", plain),
        KeyMaker("a").keys(["x", [120]], "", TextOptions(truncate=False)),
        KeyMaker("a").keys(["x", [120]], "", TextOptions(max_length=5)),
        KeyMaker("a").keys(["x", [120]], "", TextOptions(truncation_side="left")),
        KeyMaker("a", by_name=True).keys(["x", [120]], "", TextOptions(prompt_name="separation")),
        KeyMaker("a", by_name=True).keys(["x", [120]], "", TextOptions(prompt_name="classification")),
        KeyMaker("a", by_name=True).keys(["x", [120]], "", TextOptions(input_type="query")),
    ]
    flat = [item for row in keys for item in row]
    assert len(set(flat)) == len(flat)
    assert KeyMaker("a").keys(["x", "\ud800"], "", plain)[0] == keys[0][0]
