from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future

import numpy as np
import pytest

from infinity_emb import EngineArgs, SyncEngineArray
from infinity_emb.errors import LoadError, NotReadyError
from stub_backends import WAIT_S


def dummy(name, **options):
    return EngineArgs(model_name_or_path=name, engine="dummy", **options)


# Engines that fixtures of other modules keep running in this process are none of ours.
_others: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _remember_the_threads_of_others():
    _others.clear()
    _others.update(threading.enumerate())


def own_threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("infinity-") and t not in _others]


def test_tasks_return_futures_of_results_and_usage():
    array = SyncEngineArray.from_args([dummy("e"), dummy("r", task="rerank"), dummy("c", task="classify")])
    assert array.is_running is True
    future = array.embed(model="e", sentences=["ab"])
    assert isinstance(future, Future)
    vectors, usage = future.result(WAIT_S)
    assert (vectors[0].shape, usage) == ((384,), 3)
    assert len(array.rerank(model="r", query="q", docs=["a", "b"]).result(WAIT_S)[0]) == 2
    assert len(array.classify(model="c", sentences=["a"]).result(WAIT_S)[0]) == 1
    with pytest.raises(IndexError):
        array.embed(model="other", sentences=["a"]).result(WAIT_S)
    array.stop()
    array.stop()
    assert array.is_running is False
    assert not own_threads()
    with pytest.raises(NotReadyError):
        array.embed(model="e", sentences=["a"])


def test_stop_leaves_no_future_unanswered():
    array = SyncEngineArray.from_args([dummy("e")])
    futures = [array.embed(model="e", sentences=["x" * (number % 30)] * 30) for number in range(300)]
    array.stop()
    answers = [future.exception(WAIT_S) for future in futures]
    assert all(error is None or isinstance(error, NotReadyError) for error in answers)


def test_async_run_runs_any_coroutine_function_in_the_engines_thread():
    async def name(suffix):
        return threading.current_thread().name + suffix

    with SyncEngineArray.from_args([dummy("e")]) as array:
        assert array.async_run(name, "!").result(WAIT_S) == "infinity-loop!"
    assert not own_threads()


def test_an_array_that_is_dropped_ends_its_threads():
    array = SyncEngineArray.from_args([dummy("e")])
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None
    assert not own_threads()


def test_a_model_that_cannot_start_leaves_no_thread(monkeypatch):
    def broken(*_):
        raise RuntimeError("no device")

    monkeypatch.setattr("infinity_emb.backends.dummy.DummyBackend.start", broken)
    with pytest.raises(LoadError, match="cannot compute a first input: no device") as failed:
        SyncEngineArray.from_args([dummy("e")])
    assert str(failed.value.__cause__.__cause__) == "no device"
    del failed
    gc.collect()
    assert not own_threads()


def test_a_process_that_ends_without_stop_ends_cleanly_and_quickly():
    script = """
from infinity_emb import EngineArgs, SyncEngineArray
array = SyncEngineArray.from_args([EngineArgs(model_name_or_path="e", engine="dummy")])
print(array.embed(model="e", sentences=["a"]).result()[1])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


def test_many_threads_get_their_own_vectors():
    texts = [f"{number}" * (number % 40 + 1) for number in range(100)]
    with SyncEngineArray.from_args([dummy("e")]) as array:
        single = [array.embed(model="e", sentences=[text]).result(WAIT_S)[0][0] for text in texts]
        wrong = []

        def client(seed):
            chosen = [(seed * 7 + step * 13) % len(texts) for step in range(20)]
            vectors, _ = array.embed(model="e", sentences=[texts[i] for i in chosen]).result(WAIT_S)
            if not np.array_equal(np.stack(vectors), np.stack([single[i] for i in chosen])):
                wrong.append(seed)

        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
    assert not wrong
