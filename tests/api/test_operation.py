# ruff: noqa: ASYNC110 - the loops wait for a server in the same event loop
from __future__ import annotations

import asyncio
import time

import pytest


async def wait_for(condition) -> None:
    """Until it holds; the test's own time limit ends a condition that never does."""
    while not condition():
        await asyncio.sleep(0)


def test_a_client_that_leaves_cancels_the_engines_work(served):
    async def main():
        served.engine.hold = asyncio.Event()
        left = asyncio.Event()
        messages = [{"type": "http.request", "body": b'{"input": "x"}', "more_body": False}]
        sent = []

        async def receive():
            if messages:
                return messages.pop(0)
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/v1/embeddings", "headers": [], "query_string": b""}
        task = asyncio.create_task(served.app(scope, receive, send))
        await wait_for(lambda: served.engine.calls)
        left.set()
        await task
        assert served.engine.cancelled == 1
        assert sent == []
        assert "infinity_abandoned_requests_total 1.0" in served.app.serving.metrics.exposition().decode()

    asyncio.run(main())


def test_a_time_limit_in_the_header_gives_504_and_cancels(served):
    async def main(client):
        served.engine.hold = asyncio.Event()
        answer = await client.post("/v1/embeddings", json={"input": "x"}, headers={"x-request-timeout": "0.05"})
        assert answer.status_code == 504
        assert answer.json()["error"]["code"] == "deadline_exceeded"
        served.engine.hold = None
        assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 200

    served.run(main)
    assert served.engine.cancelled == 1


def test_the_time_limit_reaches_the_engine(served):
    served.request("POST", "/v1/embeddings", json={"input": "x"}, headers={"x-request-timeout": "30"})
    call = served.engine.calls[-1][3]
    assert call.deadline_s == pytest.approx(time.monotonic() + 30, abs=10)


def test_the_servers_own_time_limit_holds_without_a_header(serve):
    server = serve(request_timeout_s=0.05)

    async def main(client):
        server.engine.hold = asyncio.Event()
        assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 504

    server.run(main)


@pytest.mark.parametrize("value", ["soon", "0", "-1", "nan", "inf", ""])
def test_a_time_limit_that_is_no_positive_number_is_400(served, value):
    answer = served.request("POST", "/v1/embeddings", json={"input": "x"}, headers={"x-request-timeout": value})
    assert answer.status_code == 400


def test_health_answers_while_every_request_waits(served):
    async def main(client):
        served.engine.hold = asyncio.Event()
        waiting = [asyncio.create_task(client.post("/v1/embeddings", json={"input": "x"})) for _ in range(50)]
        await wait_for(lambda: len(served.engine.calls) == 50)
        assert (await client.get("/health")).status_code == 200
        served.engine.hold.set()
        answers = await asyncio.gather(*waiting)
        assert {answer.status_code for answer in answers} == {200}

    served.run(main)


def test_a_slow_body_is_given_up(serve):
    server = serve(body_timeout_s=0.01)

    async def pieces():
        yield b'{"input":'
        await asyncio.sleep(1)
        yield b'"x"}'

    answer = server.run(lambda client: client.post("/v1/embeddings", content=pieces()))
    assert answer.status_code == 400
    assert "did not arrive" in answer.json()["error"]["message"]


def test_a_client_that_leaves_while_sending_gets_no_answer(served):
    sent = []

    async def main():
        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        await served.app({"type": "http", "method": "POST", "path": "/embed", "headers": []}, receive, send)

    asyncio.run(main())
    assert sent == []


def test_lifespan_is_acknowledged_at_once(served):
    messages = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    sent = []

    async def receive():
        return messages.pop(0)

    async def send(message):
        sent.append(message["type"])

    asyncio.run(served.app({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
