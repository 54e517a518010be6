"""A batch that does not fit into memory is computed in halves, and later batches are smaller."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from infinity_emb.backends.base import Layout
from infinity_emb.backends.memory import Memory
from infinity_emb.errors import OutOfMemoryError
from infinity_emb.scheduler.batcher import Batcher
from infinity_emb.scheduler.dispatcher import Dispatcher
from infinity_emb.scheduler.limits import Limits
from infinity_emb.scheduler.memory import MemoryModel, is_out_of_memory, smaller_layout
from infinity_emb.scheduler.replica import Replica
from infinity_emb.scheduler.runner import Runner
from infinity_emb.scheduler.worker import Worker
from stub_backends import HANG, WAIT_S, StubBackend, expected, request_of, sized_request

LAYOUT = Layout(widths=(4, 8), batch_tokens=64)


class SmallBackend(StubBackend):
    """Fits so many token slots; the arrays of batches that did not fit can be watched."""

    def __init__(self, slots, error):
        super().__init__(LAYOUT)
        self._slots, self._error = slots, error
        self.sizes = []
        self.alive_at_retry = []
        self._failed = []

    def start(self, arrays):
        self.sizes.append(arrays["input_ids"].size)
        self.alive_at_retry.append(sum(reference() is not None for reference in self._failed))
        if arrays["input_ids"].size > self._slots:
            self._failed.append(weakref.ref(arrays["input_ids"]))
            raise self._error
        return super().start(arrays)


@pytest.fixture
def compute():
    workers = []

    def run(backend, *requests):
        dispatcher = Dispatcher(Batcher(LAYOUT, 1000), Limits(10_000, 10_000))
        for request in requests:
            dispatcher.submit(request)
        worker = Worker("worker", dispatcher, Runner(backend))
        worker.start()
        workers.append((worker, dispatcher))
        return dispatcher

    yield run
    for worker, dispatcher in workers:
        dispatcher.close()
        assert worker.join(WAIT_S)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
        RuntimeError("Failed to allocate memory for requested buffer of size 64"),
        RuntimeError("std::bad_alloc"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED ... OUT_OF_MEMORY"),
    ],
    ids=lambda error: str(error)[:20],
)
def test_everyone_gets_a_result(compute, error):
    backend = SmallBackend(16, error)
    items = [[number, 2, 3, 4] for number in range(1, 33)]
    requests = [request_of(*items[:16]), request_of(*items[16:])]
    compute(backend, *requests)
    for request, part in zip(requests, (items[:16], items[16:]), strict=True):
        request.future.result(WAIT_S)
        np.testing.assert_array_equal(request.results["embedding"], expected(*part))
    assert max(backend.sizes) > 16


def test_the_smaller_budget_is_remembered(compute):
    backend = SmallBackend(16, MemoryError())
    items = [[number, 2, 3, 4] for number in range(1, 17)]
    first = request_of(*items)
    dispatcher = compute(backend, first)
    first.future.result(WAIT_S)
    assert max(backend.sizes) == 64
    del backend.sizes[:]
    second = request_of(*items)
    dispatcher.submit(second)
    second.future.result(WAIT_S)
    assert set(backend.sizes) == {16}
    np.testing.assert_array_equal(second.results["embedding"], expected(*items))


def test_what_a_failed_batch_held_is_free_before_its_halves_are_tried(compute):
    backend = SmallBackend(16, MemoryError())
    request = request_of(*[[number, 2, 3, 4] for number in range(1, 17)])
    gc.disable()
    try:
        compute(backend, request)
        request.future.result(WAIT_S)
    finally:
        gc.enable()
    assert set(backend.alive_at_retry) == {0}


def test_an_item_that_does_not_fit_even_alone_fails_and_the_worker_goes_on(compute):
    backend = SmallBackend(0, MemoryError())
    request = request_of([1, 2, 3, 4, 5])
    dispatcher = compute(backend, request)
    error = request.future.exception(WAIT_S)
    assert isinstance(error, OutOfMemoryError)
    assert "Item 0 of the request (5 tokens)" in error.message
    assert error.retry_after_s > 0
    backend._slots = 8
    after = request_of([1, 2])
    dispatcher.submit(after)
    after.future.result(WAIT_S)


@pytest.mark.parametrize("error", [ValueError("out of memory"), RuntimeError("shape mismatch"), KeyError("memory")])
def test_other_errors_are_not_taken_for_it(error):
    assert not is_out_of_memory(error)


@pytest.mark.parametrize(("slots", "budget"), [(64, 32), (32, 16), (16, 8), (8, 8), (2, 8), (1000, 64)])
def test_the_budget_is_halved_but_always_holds_the_longest_text_and_never_grows(slots, budget):
    assert smaller_layout(LAYOUT, slots).batch_tokens == budget


def test_a_smaller_budget_makes_smaller_batches():
    batcher = Batcher(LAYOUT, 1000)
    batcher.add(sized_request(*[4] * 40))
    before = batcher.next_batch(0.0)
    assert before.rows * before.width == 64
    assert batcher.shrink(64) == 32
    after = batcher.next_batch(0.0)
    assert after.rows * after.width == 32


def test_a_worker_that_hung_closes_its_model_when_it_comes_back():
    dispatcher = Dispatcher(Batcher(LAYOUT, 1), Limits(100, 1000))
    old, new = StubBackend(), StubBackend()
    replica = Replica("worker", dispatcher, Runner(old), renew=lambda: Runner(new), hang_limit_s=3600.0)
    request = request_of([HANG])
    dispatcher.submit(request)
    replica.start(lambda: None)
    assert old.entered.acquire(timeout=WAIT_S)
    hung = replica._worker
    hung.busy_s = lambda: 7200.0
    replica.check(0.0)
    assert request.future.exception(WAIT_S) is not None
    assert old.closed == 0  # its thread may still be inside
    old.gate.set()
    assert hung.join(WAIT_S)
    assert (old.closed, new.closed) == (1, 0)
    after = request_of([2])
    dispatcher.submit(after)
    after.future.result(WAIT_S)
    dispatcher.close()
    assert replica.join(WAIT_S)


def model_of(*states):
    """A memory model that sees these (resident, available) bytes one after another, the last one for ever."""
    left = list(states)
    return MemoryModel(lambda: Memory(*(left.pop(0) if len(left) > 1 else left[0])))


def test_a_batch_larger_than_any_before_is_refused_if_what_was_measured_says_so():
    model = model_of((1000, 5000), (2000, 5000), (2000, 500))
    model.check(100)
    model.observe(100)  # 10 bytes a slot
    model.check(100)
    with pytest.raises(MemoryError, match="200 token slots"):
        model.check(200)  # 1000 bytes more, and 500 are left


def test_it_is_let_through_if_it_fits_or_if_the_measure_is_too_small_to_tell():
    model = model_of((1000, 5000), (2000, 5000))
    model.check(10_000)
    model.observe(100)
    model.check(600)
    model.check(801)  # more than eight times what was measured
    with pytest.raises(MemoryError):
        model.check(700)


def test_nothing_is_foreseen_where_the_system_does_not_tell():
    model = MemoryModel(lambda: None)
    for slots in (10, 10_000):
        model.check(slots)
        model.observe(slots)


def test_batches_that_would_not_fit_are_computed_in_halves():
    backend = SmallBackend(1000, MemoryError())
    items = [[number, 2, 3, 4] for number in range(1, 17)]
    first, second = request_of(*items[:4]), request_of(*items)
    dispatcher = Dispatcher(Batcher(LAYOUT, 1000), Limits(10_000, 10_000))
    runner = Runner(backend)
    runner.memory = model_of((0, 100), (160, 100))  # ten bytes a slot: 10 slots more fit
    dispatcher.submit(first)
    worker = Worker("worker", dispatcher, runner)
    worker.start()
    first.future.result(WAIT_S)
    dispatcher.submit(second)
    second.future.result(WAIT_S)
    dispatcher.close()
    assert worker.join(WAIT_S)
    np.testing.assert_array_equal(second.results["embedding"], expected(*items))
    assert max(backend.sizes) == 16
