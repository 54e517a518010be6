"""Signals: what was accepted is answered, the process ends with 0, nothing hangs."""

from __future__ import annotations

import signal
import threading

import httpx
import pytest

from serving import serve


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_requests_in_flight_are_answered_before_the_server_ends(minilm_folder, number) -> None:
    with serve("--model-id", str(minilm_folder)) as server:
        server.wait_until_ready()
        statuses: list[int | str] = []
        entered = threading.Semaphore(0)

        def send() -> None:
            with httpx.Client(base_url=server.url, timeout=60) as client:
                client.get("/health")
                entered.release()
                try:
                    statuses.append(client.post("/v1/embeddings", json={"input": ["word " * 150] * 16}).status_code)
                except httpx.ConnectError:
                    statuses.append("refused")  # came after the listening socket was closed

        threads = [threading.Thread(target=send) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert entered.acquire(timeout=30)
        first_answer = httpx.post(f"{server.url}/v1/embeddings", json={"input": "now"}, timeout=60)
        assert first_answer.status_code == 200  # the others are in line by now
        assert server.stop(number) == 0
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    assert set(statuses) <= {200, 503, "refused"}
    assert 200 in statuses
    assert "Traceback" not in server.output


def test_a_second_signal_ends_at_once(minilm_folder) -> None:
    with serve("--model-id", str(minilm_folder)) as server:
        server.wait_until_ready()
        with httpx.Client(base_url=server.url, timeout=60) as client:
            worker = threading.Thread(target=_ignore_the_end, args=(client,))
            worker.start()
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(15) is not None
            worker.join(30)


def _ignore_the_end(client: httpx.Client) -> None:
    try:
        client.post("/v1/embeddings", json={"input": ["word " * 200] * 256})
    except httpx.HTTPError:
        return  # cut off on purpose
