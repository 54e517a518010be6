"""What `/health` says, how fast, while the server has all the work it can do and while its worker dies and hangs.

Times are asserted only in the long run (`make soak`), on a machine that does nothing else.
"""

from __future__ import annotations

import http.client
import multiprocessing
import sys
import threading
import time
import urllib.parse

import faults
import httpx
from overload import percentile
from work import LONG_S, saturate

HEALTH_S = 0.05
DEAD_S = 2.0
PAUSE_S = 0.005
WAIT_S = 30.0


class Watch:
    """Asks `/health` again and again on a connection of its own; keeps when, how long it took, and the status."""

    def __init__(self, url: str) -> None:
        self._parts = urllib.parse.urlsplit(url)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.seen: list[tuple[float, float, int]] = []

    def __enter__(self) -> Watch:  # noqa: PYI034 - Self is newer than Python 3.10
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(self._parts.hostname or "", self._parts.port, timeout=WAIT_S)
        while not self._stop.wait(PAUSE_S):
            started_s = time.monotonic()
            connection.request("GET", "/health")
            answer = connection.getresponse()
            answer.read()
            self.seen.append((started_s, time.monotonic() - started_s, answer.status))
        connection.close()

    def first(self, status: int, after_s: float) -> float:
        """When this status was first seen after a moment; waits for it."""
        deadline_s = time.monotonic() + WAIT_S
        while time.monotonic() < deadline_s:
            found = next(
                (at_s + took_s for at_s, took_s, said in list(self.seen) if at_s > after_s and said == status), None
            )
            if found is not None:
                return found
            time.sleep(PAUSE_S)
        raise AssertionError(f"/health never said {status}")


def test_health_answers_at_once_when_the_server_is_saturated(serve_faulty, chaos_s):
    with serve_faulty("--log-level", "critical") as server:
        server.wait_until_ready()
        client = multiprocessing.get_context("spawn").Process(
            target=saturate, args=(server.url, min(60.0, chaos_s / 10))
        )
        with Watch(server.url) as watch:
            client.start()
            client.join()
        busy = [took_s for _, took_s, _ in watch.seen]
        sys.stdout.write(
            f"/health at saturation: {len(busy)} times, median {percentile(busy, 0.5) * 1000:.1f} ms, "
            f"p99 {percentile(busy) * 1000:.1f} ms, most {max(busy) * 1000:.1f} ms\n"
        )
        assert client.exitcode == 0
        assert {status for _, _, status in watch.seen} == {200}
        if chaos_s >= LONG_S:
            assert percentile(busy) <= HEALTH_S


def test_health_tells_of_a_dead_and_of_a_hung_worker_and_of_the_new_one(serve_faulty, chaos_s):
    with serve_faulty("--hang-limit-s", str(faults.HANG_LIMIT_S), "--log-level", "critical") as server:
        server.wait_until_ready()

        def send(word: str) -> int:
            return httpx.post(
                f"{server.url}/v1/embeddings", json={"input": f"now {word} please"}, timeout=60
            ).status_code

        assert send(faults.DIE) == 503  # replaced at once; the next one that dies within a minute waits for a second
        server.wait_until_ready()
        with Watch(server.url) as watch:
            died_s = time.monotonic()
            assert send(faults.DIE) == 503
            told_s = watch.first(503, died_s)
            back_s = watch.first(200, told_s)
            hung_s = time.monotonic()
            assert send(faults.HANG) == 503
            told_hung_s = watch.first(503, hung_s)
            back_hung_s = watch.first(200, told_hung_s)
        sys.stdout.write(
            f"/health after a death: 503 within {told_s - died_s:.2f} s, 200 again {back_s - told_s:.2f} s later; after a "
            f"hang: 503 within {told_hung_s - hung_s:.2f} s (limit {faults.HANG_LIMIT_S} s), 200 again "
            f"{back_hung_s - told_hung_s:.2f} s later\n"
        )
        assert send("good") == 200
        if chaos_s >= LONG_S:
            assert told_s - died_s <= DEAD_S
            assert told_hung_s - hung_s <= faults.HANG_LIMIT_S + DEAD_S
