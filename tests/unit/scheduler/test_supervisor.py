"""A dead or hung worker is answered for, replaced, and never hidden."""

from __future__ import annotations

import threading
import time

import pytest

from infinity_emb.errors import NotReadyError
from infinity_emb.scheduler.replica import BACKOFF_MAX_S, STEADY_S, Replica
from infinity_emb.scheduler.runner import Runner
from infinity_emb.scheduler.supervisor import Supervisor
from stub_backends import DIE, HANG, WAIT_S, StubBackend, dispatcher_of, expected, request_of

HOUR_S = 3600.0


class Rig:
    """Replicas of stub backends; hangs are found when the test says `look`."""

    def __init__(self, *, replicas=1, renew=False):
        self.dispatcher = dispatcher_of(max_items=1)
        self.looked_ahead = threading.Event()  # a worker that computes has looked for its next batch
        self._take, self.dispatcher.take = self.dispatcher.take, self.take
        self.backends = [StubBackend() for _ in range(replicas)]
        self.renewed = []
        self.renew_error = None
        self.replicas = [
            Replica(
                f"worker-{number}",
                self.dispatcher,
                Runner(backend),
                renew=self.renew if renew else None,
                hang_limit_s=HOUR_S,
            )
            for number, backend in enumerate(self.backends)
        ]
        self.supervisor = Supervisor(self.dispatcher, self.replicas, interval_s=HOUR_S)

    def renew(self):
        if self.renew_error is not None:
            raise self.renew_error
        self.renewed.append(StubBackend())
        return Runner(self.renewed[-1])

    def take(self, *, wait):
        batch = self._take(wait=wait)
        if not wait:
            self.looked_ahead.set()
        return batch

    def submit(self, *items):
        request = request_of(*items)
        self.dispatcher.submit(request)
        return request

    def pretend_hours(self, number=0):
        """As if the worker's batch had been computing for hours; returns how to stop pretending."""
        worker = self.replicas[number]._worker
        worker.busy_s = lambda: 2 * HOUR_S
        return lambda: vars(worker).pop("busy_s")

    def close(self):
        for backend in [*self.backends, *self.renewed]:
            backend.gate.set()
        self.supervisor.stop(WAIT_S)
        self.dispatcher.close()
        assert all(replica.join(WAIT_S) for replica in self.replicas)


@pytest.fixture
def rig_of():
    rigs = []

    def make(**options):
        rigs.append(Rig(**options))
        return rigs[-1]

    yield make
    for rig in rigs:
        rig.close()


def test_a_worker_that_dies_is_replaced_at_once_and_the_waiting_requests_are_computed(rig_of):
    rig = rig_of()
    poison, neighbour = rig.submit([DIE]), rig.submit([2])
    waiting = rig.submit([3])
    rig.supervisor.start()
    assert isinstance(poison.future.exception(WAIT_S), NotReadyError)
    assert isinstance(neighbour.future.exception(WAIT_S), NotReadyError)  # it was taken ahead
    waiting.future.result(WAIT_S)
    assert waiting.results["embedding"].tolist() == expected([3]).tolist()
    assert rig.supervisor.restarts == 1
    assert rig.supervisor.alive


def test_a_worker_that_dies_again_and_again_is_restarted_more_and_more_rarely(rig_of):
    rig = rig_of()
    replica = rig.replicas[0]
    replica.start(lambda: None)
    now_s, waits = time.monotonic(), []
    for _ in range(9):
        poison = rig.submit([DIE])
        assert isinstance(poison.future.exception(WAIT_S), NotReadyError)
        replica.join(WAIT_S)
        assert not replica.alive
        waits.append(max(0.0, replica.next_try_s() - now_s))
        now_s += waits[-1]
        if waits[-1] > 0.0:
            replica.check(now_s - 0.01)
            assert not replica.alive
        replica.check(now_s)
        assert replica.alive
    assert waits == pytest.approx([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, BACKOFF_MAX_S, BACKOFF_MAX_S])
    replica.check(now_s + STEADY_S + 1.0)  # it has lived long enough
    assert replica.next_try_s() == now_s


def test_while_no_worker_lives_waiting_and_new_requests_are_refused_with_the_time_to_come_back(rig_of):
    rig = rig_of()
    rig.supervisor.start()
    for _ in range(2):
        assert isinstance(rig.submit([DIE]).future.exception(WAIT_S), NotReadyError)
    rig.replicas[0].join(WAIT_S)
    rig.supervisor.look(rig.replicas[0].next_try_s() - 0.5)
    assert not rig.supervisor.alive
    with pytest.raises(NotReadyError, match="restarted") as caught:
        rig.submit([2])
    assert caught.value.retry_after_s == 1
    rig.supervisor.look(rig.replicas[0].next_try_s())
    assert rig.supervisor.alive
    rig.submit([2]).future.result(WAIT_S)


def test_a_hung_worker_is_answered_for_and_comes_back_by_itself(rig_of):
    rig = rig_of()
    hanging = rig.submit([HANG])
    rig.supervisor.start()
    assert rig.backends[0].entered.acquire(timeout=WAIT_S)
    waiting = rig.submit([2])
    assert rig.supervisor.alive
    come_back = rig.pretend_hours()
    assert not rig.supervisor.alive  # true at once, not at the next look
    rig.supervisor.look(time.monotonic())
    assert "hung" in str(hanging.future.exception(WAIT_S))
    assert isinstance(waiting.future.exception(WAIT_S), NotReadyError)
    with pytest.raises(NotReadyError):
        rig.submit([3])
    come_back()
    rig.backends[0].gate.set()
    rig.supervisor.look(time.monotonic())
    again = rig.submit([4])
    again.future.result(WAIT_S)
    assert again.results["embedding"].tolist() == expected([4]).tolist()
    assert rig.supervisor.restarts == 0
    assert hanging.future.answers == 1


def test_a_hung_worker_is_replaced_by_one_on_a_fresh_backend_if_there_can_be_one(rig_of):
    rig = rig_of(renew=True)
    hanging = rig.submit([HANG])
    rig.supervisor.start()
    assert rig.looked_ahead.wait(WAIT_S)  # so that the next request is the successor's
    waiting = rig.submit([2])
    rig.pretend_hours()
    rig.supervisor.look(time.monotonic())
    assert isinstance(hanging.future.exception(WAIT_S), NotReadyError)
    waiting.future.result(WAIT_S)
    assert rig.renewed[0].batches == [[2]]
    assert rig.supervisor.alive
    assert rig.supervisor.restarts == 1
    rig.backends[0].gate.set()  # the old thread wakes up, drops its result and ends
    rig.submit([3]).future.result(WAIT_S)
    assert rig.backends[0].batches == [[HANG]]
    assert hanging.future.answers == 1


def test_a_worker_that_comes_back_and_hangs_again_while_its_successor_is_loaded_is_answered_for(rig_of):
    rig = rig_of(renew=True)
    old, load = rig.backends[0], rig.renew
    second = []

    def load_slowly():
        come_back()
        old.gate.set()
        rig.submit([2]).future.result(WAIT_S)
        assert old.entered.acquire(timeout=WAIT_S)
        old.gate.clear()
        second.append(rig.submit([HANG]))
        assert old.entered.acquire(timeout=WAIT_S)
        rig.pretend_hours()
        return load()

    rig.replicas[0]._renew = load_slowly
    rig.submit([HANG])
    rig.replicas[0].start(lambda: None)  # without the supervisor's thread: this one looks
    assert old.entered.acquire(timeout=WAIT_S)
    come_back = rig.pretend_hours()
    rig.supervisor.look(time.monotonic())
    assert rig.supervisor.alive
    assert second[0].future.answers == 0
    rig.supervisor.look(time.monotonic())
    assert "hung" in str(second[0].future.exception(WAIT_S))
    old.gate.set()
    rig.submit([3]).future.result(WAIT_S)
    assert rig.renewed[0].batches == [[3]]
    assert second[0].future.answers == 1


def test_a_backend_that_cannot_be_loaded_again_is_tried_later_and_the_model_stays_down(rig_of):
    rig = rig_of(renew=True)
    rig.renew_error = MemoryError("no room")
    hanging = rig.submit([HANG])
    rig.supervisor.start()
    assert rig.backends[0].entered.acquire(timeout=WAIT_S)
    rig.pretend_hours()
    now_s = time.monotonic()
    rig.supervisor.look(now_s)
    assert isinstance(hanging.future.exception(WAIT_S), NotReadyError)
    assert not rig.supervisor.alive
    assert rig.supervisor.restarts == 0
    rig.renew_error = None
    rig.supervisor.look(now_s + 0.5)
    assert not rig.renewed
    rig.supervisor.look(now_s + 1.0)
    rig.submit([2]).future.result(WAIT_S)


def test_one_hung_replica_of_two_leaves_the_model_up(rig_of):
    rig = rig_of(replicas=2)
    hanging = rig.submit([HANG])
    rig.supervisor.start()
    assert rig.looked_ahead.wait(WAIT_S)  # and found nothing
    hung = next(number for number, backend in enumerate(rig.backends) if backend.batches)
    rig.pretend_hours(hung)
    rig.supervisor.look(time.monotonic())
    assert isinstance(hanging.future.exception(WAIT_S), NotReadyError)
    assert rig.supervisor.alive
    for number in range(2, 20):
        rig.submit([number]).future.result(WAIT_S)


def test_stop_ends_the_watch_without_waiting_for_the_next_look(rig_of):
    rig = rig_of()
    rig.supervisor.start()
    begun_s = time.monotonic()
    rig.supervisor.stop(WAIT_S)
    assert not rig.supervisor._thread.is_alive()
    assert time.monotonic() - begun_s < WAIT_S / 2


def test_nothing_is_suspended_or_resumed_once_the_line_is_closed():
    dispatcher = dispatcher_of()
    dispatcher.close()
    dispatcher.suspend("down", 1)
    dispatcher.resume()
    with pytest.raises(NotReadyError, match="stopping"):
        dispatcher.submit(request_of([1]))
