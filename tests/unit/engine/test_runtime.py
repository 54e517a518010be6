from __future__ import annotations

import asyncio

import numpy as np
import pytest

from infinity_emb.engine.runtime import ModelRuntime
from infinity_emb.models.features import Features
from infinity_emb.types import Call
from stub_backends import StubBackend, expected


@pytest.fixture
def backend():
    return StubBackend()


@pytest.fixture
def runtime(backend):
    runtime = ModelRuntime([backend], max_items=32, queue_items=1000, queue_tokens=None)
    runtime.start()
    yield runtime
    assert runtime.stop(1.0)


def features(*ids):
    return [Features(np.array(ids, np.int64))]


def test_requests_of_one_turn_of_the_event_loop_wake_the_worker_once(runtime, monkeypatch):
    wakes = []
    wake = runtime._dispatcher.wake
    monkeypatch.setattr(runtime._dispatcher, "wake", lambda: wakes.append(wake()))

    async def main():
        asked = [asyncio.ensure_future(runtime.compute(features(number, 7), Call())) for number in range(1, 9)]
        return await asyncio.gather(*asked)

    results = asyncio.run(main())
    for number, outputs in enumerate(results, 1):
        np.testing.assert_array_equal(outputs["embedding"], expected((number, 7)))
    assert len(wakes) == 1


def test_a_request_made_after_another_event_loop_went_away_is_computed(runtime):
    abandoned = asyncio.new_event_loop()
    lost = runtime.compute(features(1), Call())
    abandoned.call_soon(lambda: (abandoned.create_task(lost), abandoned.call_soon(abandoned.stop)))
    abandoned.run_forever()  # stops before the worker is woken
    for task in asyncio.all_tasks(abandoned):
        task.cancel()
    assert asyncio.run(runtime.compute(features(2), Call()))["embedding"][0, 0] == 2
    abandoned.run_until_complete(asyncio.sleep(0))
    abandoned.close()


def test_results_outlive_the_buffer_that_the_library_reuses(runtime, backend):
    started = backend.start

    def start_in_one_buffer(arrays):
        pending = started(arrays)
        buffer[: len(pending._vectors)] = pending._vectors
        pending._vectors = buffer[: len(pending._vectors)]
        return pending

    buffer = np.zeros((32, 4), np.float32)
    backend.start = start_in_one_buffer
    first = asyncio.run(runtime.compute(features(1, 2), Call()))
    asyncio.run(runtime.compute(features(3, 4), Call()))
    np.testing.assert_array_equal(first["embedding"], expected((1, 2)))
