"""Worker and dispatcher together: every request is answered exactly once, with its own results or its own error."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from infinity_emb.errors import BackendError, DeadlineExceededError, NotReadyError, OverloadedError
from infinity_emb.scheduler.runner import Runner
from infinity_emb.scheduler.worker import Worker
from infinity_emb.types import Priority
from stub_backends import (
    DIE,
    HANG,
    INF_ROW,
    NAN_BATCH,
    NAN_ROW,
    PACKED,
    PADDED,
    RAISE_IN_RESULT,
    RAISE_IN_START,
    WAIT_S,
    WRONG_WIDTH,
    ZERO_NORM,
    Death,
    StubBackend,
    dispatcher_of,
    expected,
    request_of,
)


class Bench:
    """A dispatcher, some stub backends and their workers."""

    def __init__(self, layout=PACKED, replicas=1, **limits):
        self.dispatcher = dispatcher_of(layout, **limits)
        self.backends = [StubBackend(layout) for _ in range(replicas)]
        self.runners = [Runner(backend) for backend in self.backends]
        self.died = threading.Event()
        self.workers = [
            Worker(f"worker-{number}", self.dispatcher, runner, self.died.set)
            for number, runner in enumerate(self.runners)
        ]
        self.requests = []

    @property
    def backend(self):
        return self.backends[0]

    def submit(self, *items, **options):
        request = request_of(*items, **options)
        self.dispatcher.submit(request)
        self.requests.append(request)
        return request

    def start(self):
        for worker in self.workers:
            worker.start()
        return self

    def hold(self, *ahead, **options):
        """Start, and make the worker compute [1] until `release`; what is submitted then waits.

        With the items of a second request, that one (or as much of it as a batch holds) is taken ahead.
        """
        self.backend.gated = True
        blocker = self.submit([1])
        if not ahead:
            self.start()
            assert self.backend.entered.acquire(timeout=WAIT_S)
            return blocker
        taken = threading.Event()
        take = self.dispatcher.take

        def first_alone(*, wait):
            batch = take(wait=wait)
            if not wait:
                self.dispatcher.take = take
                taken.set()
            elif not self.requests[1:]:
                request = self.submit(*ahead, **options)
                assert request.future.answers == 0
            return batch

        self.dispatcher.take = first_alone
        self.start()
        assert taken.wait(WAIT_S)
        assert self.backend.entered.acquire(timeout=WAIT_S)
        return blocker, self.requests[1]

    def release(self):
        self.backend.gated = False
        self.backend.gate.set()

    def close(self):
        self.release()
        self.dispatcher.close()
        for worker in self.workers:
            if worker.alive:
                assert worker.join(WAIT_S)
        assert self.dispatcher.load().running_items == 0
        assert self.dispatcher.load().items == 0
        for request in self.requests:
            assert request.future.answers <= 1


@pytest.fixture
def bench_of():
    benches = []

    def make(*args, **kwargs):
        benches.append(Bench(*args, **kwargs))
        return benches[-1]

    yield make
    for bench in benches:
        bench.close()


def result_of(request):
    request.future.result(WAIT_S)
    return request.results["embedding"]


def error_of(request):
    return request.future.exception(WAIT_S)


def right(request, *items):
    np.testing.assert_array_equal(result_of(request), expected(*items))


@pytest.mark.parametrize("layout", [PACKED, PADDED], ids=["packed", "padded"])
def test_items_of_any_length_come_back_in_their_order(bench_of, layout):
    bench = bench_of(layout).start()
    random = np.random.default_rng(0)
    lists = [[random.integers(1, 900, random.integers(1, 33)).tolist() for _ in range(count)] for count in (1, 7, 64)]
    requests = [bench.submit(*items) for items in lists]
    for request, items in zip(requests, lists, strict=True):
        right(request, *items)


@pytest.mark.parametrize("poison", [RAISE_IN_START, RAISE_IN_RESULT, NAN_ROW, INF_ROW, NAN_BATCH, ZERO_NORM])
@pytest.mark.parametrize("layout", [PACKED, PADDED], ids=["packed", "padded"])
def test_a_poisoned_item_fails_its_own_request_and_no_other(bench_of, layout, poison):
    bench = bench_of(layout)
    before, guilty, after = [[5], [6, 7]], [[8], [9], [poison, 2], [10]], [[11]]
    requests = [bench.submit(*items) for items in (before, guilty, after)]
    bench.start()
    right(requests[0], *before)
    right(requests[2], *after)
    error = error_of(requests[1])
    assert isinstance(error, BackendError)
    assert error.item_index == 2
    right(bench.submit([12]), [12])


def test_the_words_of_a_foreign_library_are_for_the_log_alone(bench_of, caplog):
    """They may hold paths of this machine."""
    bench = bench_of()
    request = bench.submit([RAISE_IN_START])
    bench.start()
    error = error_of(request)
    assert "ValueError" in error.message
    assert "start broke" not in error.message
    assert "start broke" in caplog.text
    assert "start broke" in str(error.__cause__)


def test_two_poisoned_requests_in_one_batch_each_name_their_item(bench_of):
    bench = bench_of()
    good = [bench.submit([number]) for number in (1, 2, 3)]
    first = bench.submit([4], [RAISE_IN_RESULT])
    more = [bench.submit([number]) for number in (5, 6)]
    second = bench.submit([RAISE_IN_START])
    bench.start()
    for number, request in zip((1, 2, 3, 5, 6), good + more, strict=True):
        right(request, [number])
    assert error_of(first).item_index == 1
    assert error_of(second).item_index == 0


def test_a_failed_batch_is_tried_a_bounded_number_of_times(bench_of):
    bench = bench_of()
    requests = [bench.submit([RAISE_IN_RESULT]) for _ in range(16)]
    bench.start()
    assert all(isinstance(error_of(request), BackendError) for request in requests)
    assert len(bench.backend.batches) <= 31


def test_a_request_that_failed_is_not_computed_further(bench_of):
    bench = bench_of(max_items=4)
    request = bench.submit([RAISE_IN_START], *[[5]] * 400)
    bench.start()
    assert error_of(request).item_index == 0
    assert sum(len(batch) for batch in bench.backend.batches) < 30


def test_an_item_that_breaks_collation_is_isolated_too(bench_of):
    bench = bench_of()
    collate = bench.runners[0].collate

    def breaks(batch):
        if any(request.items[position].token_ids[0] == 13 for request, position in batch.entries):
            raise IndexError("collate broke")
        return collate(batch)

    bench.runners[0].collate = breaks
    blocker, ahead = bench.hold([13])
    good, bad = bench.submit([4]), bench.submit([13])
    bench.release()
    right(blocker, [1])
    assert "IndexError" in str(error_of(ahead))
    right(good, [4])
    assert "IndexError" in str(error_of(bad))
    assert bench.workers[0].busy_s() == 0.0


def test_rows_of_another_width_than_before_fail_that_request_alone(bench_of):
    bench = bench_of(max_items=1)
    bad, good = bench.submit([1], [WRONG_WIDTH]), bench.submit([2])
    bench.start()
    assert error_of(bad).item_index == 1
    right(good, [2])


def test_a_backend_that_returns_no_matrix_of_floats_is_a_backend_error(bench_of):
    bench = bench_of()

    class Wrong:
        def result(self):
            return {"embedding": np.array([["a"]])}

    bench.backend.start = lambda _: Wrong()
    request = bench.submit([1])
    bench.start()
    assert "bug" in str(error_of(request))


def test_a_dying_worker_answers_what_it_held_and_says_that_it_is_dead(bench_of):
    bench = bench_of(max_items=2)
    bench.backend.gated = True
    computing = bench.submit([DIE], [2])
    ahead = bench.submit([3], [4])
    bench.start()
    assert bench.backend.entered.acquire(timeout=WAIT_S)
    waiting = bench.submit([5])
    bench.release()
    assert bench.died.wait(WAIT_S)
    for request in (computing, ahead):
        error = error_of(request)
        assert isinstance(error, NotReadyError)
        assert error.retry_after_s == 1
    assert not bench.workers[0].alive
    assert isinstance(bench.workers[0].died, Death)
    assert waiting.future.answers == 0
    assert bench.dispatcher.load().items == 1


def test_a_bug_in_handing_out_results_is_answered_too(bench_of, monkeypatch):
    bench = bench_of()

    def broken(*_):
        raise LookupError("a bug")

    monkeypatch.setattr("infinity_emb.scheduler.dispatcher._store", broken)
    request = bench.submit([1])
    bench.start()
    assert isinstance(error_of(request), NotReadyError)
    assert bench.died.wait(WAIT_S)


def test_an_abandoned_batch_is_answered_once_and_its_late_result_is_dropped(bench_of):
    bench = bench_of(max_items=1)
    computing, ahead = bench.hold([2])
    waiting = bench.submit([3])
    bench.workers[0].abandon(NotReadyError("it hangs"))
    assert str(error_of(computing)) == "it hangs"
    assert str(error_of(ahead)) == "it hangs"
    bench.release()
    right(waiting, [3])
    assert bench.workers[0].alive
    assert [2] not in bench.backend.batches
    assert "embedding" not in computing.results


def test_a_retired_worker_takes_nothing_more(bench_of):
    bench = bench_of(max_items=1)
    computing = bench.hold()
    bench.workers[0].retire()
    bench.release()
    right(computing, [1])
    late = bench.submit([2])
    successor = Worker("successor", bench.dispatcher, bench.runners[0])
    # a retired worker may hold the batch it took before; it ends after that one
    assert bench.workers[0].join(WAIT_S) or late.future.result(WAIT_S) is None
    bench.workers.append(successor)
    successor.start()
    right(late, [2])


def test_a_cancelled_request_is_never_computed(bench_of):
    bench = bench_of(max_items=1)
    bench.hold()
    gone = [bench.submit([100 + number]) for number in range(300)]
    for request in gone:
        bench.dispatcher.cancel(request)
    last = bench.submit([7])
    assert bench.dispatcher.load().items <= 1
    bench.release()
    right(last, [7])
    assert sum(len(batch) for batch in bench.backend.batches) <= 3
    assert all(request.future.answers == 0 for request in gone)


def test_a_batch_taken_ahead_whose_callers_are_gone_is_not_computed(bench_of):
    bench = bench_of(max_items=1)
    computing, ahead = bench.hold([100])
    bench.dispatcher.cancel(ahead)
    bench.release()
    right(computing, [1])  # would hang if the worker waited for other work first
    right(bench.submit([3]), [3])
    assert [100] not in bench.backend.batches


def test_a_passed_deadline_is_answered_without_computing(bench_of):
    bench = bench_of(max_items=1)
    bench.hold()
    bench.submit([2])
    late = bench.submit([3], [4], deadline_s=time.monotonic() - 1.0)
    good = bench.submit([5], deadline_s=time.monotonic() + 600.0)
    bench.release()
    assert isinstance(error_of(late), DeadlineExceededError)
    right(good, [5])
    assert not {3, 4} & {first for batch in bench.backend.batches for first in batch}


def test_draining_ends_when_the_last_waiting_request_runs_out_of_time(bench_of):
    bench = bench_of()
    late = bench.submit([3], deadline_s=time.monotonic() - 1.0)
    drained = []
    thread = threading.Thread(target=lambda: drained.append(bench.dispatcher.drain(WAIT_S)))
    thread.start()
    bench.start()
    thread.join(WAIT_S)
    assert drained == [True]
    assert isinstance(error_of(late), DeadlineExceededError)


def test_an_interactive_request_overtakes_a_bulk_batch_taken_ahead(bench_of):
    bench = bench_of(max_items=2)
    _, bulk = bench.hold([2], [3], [4], [5], priority=Priority.BULK)
    urgent = bench.submit([6])
    bench.release()
    right(urgent, [6])
    right(bulk, [2], [3], [4], [5])
    assert bench.backend.batches == [[1], [6], [2, 3], [4, 5]]


def test_overload_refuses_a_whole_request_with_whole_seconds(bench_of):
    bench = bench_of(items=10, tokens=50)
    blocker, fills = bench.hold(*[[2]] * 8)
    waits = bench.submit(*[[3]] * 9)
    with pytest.raises(OverloadedError) as caught:
        bench.submit([4], [4])
    assert isinstance(caught.value.retry_after_s, int)
    assert caught.value.retry_after_s >= 1
    with pytest.raises(OverloadedError):
        bench.submit([5] * 32, [5] * 10)
    assert bench.dispatcher.load().items == 9
    bench.submit([6])
    bench.release()
    right(blocker, [1])
    right(fills, *[[2]] * 8)
    right(waits, *[[3]] * 9)


def test_an_idle_line_takes_a_request_of_any_size(bench_of):
    bench = bench_of(items=10, tokens=50)
    request = bench.submit(*[[3, 4]] * 100)
    bench.start()
    right(request, *[[3, 4]] * 100)


def test_drain_finishes_what_was_accepted_and_takes_nothing_new(bench_of):
    bench = bench_of()
    requests = [bench.submit(*[[number]] * 20) for number in range(1, 30)]
    bench.start()
    assert bench.dispatcher.drain(WAIT_S)
    for number, request in enumerate(requests, 1):
        assert request.future.answers == 1
        right(request, *[[number]] * 20)
    with pytest.raises(NotReadyError) as caught:
        bench.submit([1])
    assert caught.value.retry_after_s == 5


def test_drain_says_when_time_was_not_enough(bench_of):
    bench = bench_of()
    bench.hold()
    assert not bench.dispatcher.drain(0.0)


def test_close_answers_everything_that_waits_and_lets_the_worker_go(bench_of):
    bench = bench_of(max_items=2)
    computing = bench.hold()
    waiting = [bench.submit(*[[number]] * 5) for number in range(2, 8)]
    bench.dispatcher.close()
    for request in waiting:
        assert isinstance(error_of(request), NotReadyError)
    bench.release()
    right(computing, [1])
    assert bench.workers[0].join(WAIT_S)
    assert all(request.future.answers == 1 for request in [computing, *waiting])


def test_close_before_start_and_twice_is_harmless(bench_of):
    bench = bench_of()
    request = bench.submit([1])
    bench.dispatcher.close()
    bench.dispatcher.close()
    assert isinstance(error_of(request), NotReadyError)
    assert request.future.answers == 1


def test_replicas_share_the_line(bench_of):
    bench = bench_of(replicas=3, max_items=1)
    for backend in bench.backends:
        backend.gated = True
    requests = [bench.submit([number]) for number in range(1, 10)]
    bench.start()
    for backend in bench.backends:
        assert backend.entered.acquire(timeout=WAIT_S)  # all three compute at once
    for backend in bench.backends:
        backend.gate.set()
    for number, request in enumerate(requests, 1):
        right(request, [number])


def test_one_dead_replica_leaves_the_others_working(bench_of):
    bench = bench_of(replicas=2, max_items=1)
    poison = bench.submit([DIE])
    bench.start()
    assert isinstance(error_of(poison), NotReadyError)
    requests = [bench.submit([number]) for number in range(1, 50)]
    for number, request in enumerate(requests, 1):
        right(request, [number])


def test_busy_time_counts_the_running_batch_only(bench_of):
    bench = bench_of()
    assert bench.workers[0].busy_s() == 0.0
    request = bench.submit([HANG])
    bench.start()
    assert bench.backend.entered.acquire(timeout=WAIT_S)
    assert bench.workers[0].busy_s() > 0.0
    bench.release()
    right(request, [HANG])


def test_many_threads_get_their_own_results(bench_of):
    bench = bench_of(replicas=2)
    bench.start()
    wrong = []

    def client(seed):
        random = np.random.default_rng(seed)
        for _ in range(25):
            items = [random.integers(1, 900, random.integers(1, 20)).tolist() for _ in range(random.integers(1, 20))]
            request = bench.submit(*items)
            if not np.array_equal(result_of(request), expected(*items)):
                wrong.append(items)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert not wrong
    assert len(bench.requests) == 400
    assert all(request.future.answers == 1 for request in bench.requests)
