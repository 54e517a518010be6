"""Cases about a running server: faults, load, and clients that leave."""

# ruff: noqa: ASYNC110 - the loops wait for an engine that tells nobody

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import numpy as np
import pytest

from cases.faults import POISON, WAIT_S, Death, Gate, gated, poisoned, replaced_start
from cases.served import Served, message_of, vectors_of
from infinity_emb.server import openai

OUTAGE = frozenset({503})


@pytest.fixture
def dummy(start):
    """A new server of a model that costs nothing: `dummy(**options)` gives it and its engine."""

    def make(**options):
        engine = start("some/dummy", engine="dummy", **options)
        return Served(engine), engine

    return make


async def until(condition) -> None:
    """Wait for what must come."""
    async with asyncio.timeout(WAIT_S) if hasattr(asyncio, "timeout") else _no_limit():
        while not condition():
            await asyncio.sleep(0.001)


class _no_limit:  # noqa: N801 - stands for `asyncio.timeout` on Python 3.10, where the test's own limit holds
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None


@pytest.mark.parametrize("late", [False, True], ids=["at once", "while computing"])
def test_b097_an_exception_fails_its_own_request_and_no_later_one(dummy, late):
    server, engine = dummy()
    texts = [["good"], ["fine", POISON], ["well"] * 3]
    with poisoned(engine, RuntimeError("the device is gone"), late=late):
        answers = server.post_all("/v1/embeddings", [{"input": text} for text in texts])
        assert [answer.status_code for answer in answers] == [200, 500, 200]
        assert "item 1" in message_of(answers[1], statuses=frozenset({500}))
        for _ in range(3):
            assert server.post("/v1/embeddings", input=POISON).status_code == 500
            assert server.post("/v1/embeddings", input="ok").status_code == 200
    assert server.get("/health").status_code == 200
    assert server.post("/v1/embeddings", input=POISON).status_code == 200


def test_b097_an_exception_before_the_batch_fails_its_own_request_alone(dummy, monkeypatch):
    server, engine = dummy()
    preprocessor = engine._model.preprocessor
    read = preprocessor.texts

    def texts(inputs, options):
        if POISON in inputs:
            raise RuntimeError("the tokenizer broke at /some/path")
        return read(inputs, options)

    monkeypatch.setattr(preprocessor, "texts", texts)
    for _ in range(5):
        message = message_of(server.post("/v1/embeddings", input=POISON), statuses=frozenset({500}))
        assert "/some/path" not in message
        assert server.post("/v1/embeddings", input=[POISON] + ["x"] * 200).status_code == 500  # in the pool
        assert server.post("/v1/embeddings", input=["ok"] * 200).status_code == 200
    assert server.get("/health").status_code == 200


def test_b097_a_worker_that_dies_answers_what_it_held_and_is_replaced(dummy):
    server, engine = dummy()
    with poisoned(engine, Death("gone")):
        message_of(server.post("/v1/embeddings", input=POISON), statuses=OUTAGE)
    assert server.post("/v1/embeddings", input="ok").status_code in {200, 503}
    server.run(lambda client: until_status(client, "/health", 200))
    assert server.post("/v1/embeddings", input="ok").status_code == 200


async def until_status(client, path, status):
    answer = None
    while answer is None or answer.status_code != status:
        answer = await client.get(path)
        await asyncio.sleep(0.01)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_b100_memory_does_not_grow_with_the_number_of_requests(embedder):
    chance = random.Random(1)

    async def send(client, count):
        for _ in range(count):
            texts = ["word " * chance.randint(0, 100) for _ in range(chance.randint(1, 24))]
            assert (await client.post("/v1/embeddings", json={"input": texts})).status_code == 200

    async def main(client):
        await send(client, 300)
        before = resident_bytes()
        await send(client, 700)
        return before, resident_bytes()

    before, after = embedder.run(main)
    assert after < 1.1 * before


def test_b100_one_giant_request_is_computed_in_batches_of_bounded_size(embedder, engines):
    engine = engines["embed"]
    gate = Gate()
    gate.open()
    with replaced_start(engine, gate):
        answer = embedder.post("/v1/embeddings", input=["word " * 100] * 2048, encoding_format="base64")
    assert answer.status_code == 200
    assert answer.json()["usage"]["prompt_tokens"] == 2048 * 64
    assert len(gate.batches) > 1
    largest = engine._model.backends[0].layout.batch_tokens
    assert max(rows * width for rows, width in gate.batches) <= largest


def test_b101_counting_cutting_and_padding_at_once_give_what_they_give_one_by_one(everything):
    chance = random.Random(2)
    texts = ["tea " * (2000 if number % 5 == 0 else chance.randint(1, 30)) + str(number) for number in range(100)]
    embed = [{"model": "acme/embed", "input": [text, "lima"]} for text in texts]
    rerank = [{"model": "acme/rerank", "query": "tea", "documents": [text, "lima"]} for text in texts]

    async def main(client):
        alone = [await client.post("/v1/embeddings", json=body) for body in embed]
        alone += [await client.post("/rerank", json=body) for body in rerank]
        at_once = [client.post("/v1/embeddings", json=body) for body in embed]
        at_once += [client.post("/rerank", json=body) for body in rerank]
        return alone, await asyncio.gather(*at_once)

    alone, at_once = everything.run(main)
    for expected, answer in zip(alone, at_once, strict=True):
        assert answer.status_code == expected.status_code == 200
        assert answer.json()["usage"] == expected.json()["usage"]
    for expected, answer in zip(alone[:100], at_once, strict=False):
        np.testing.assert_allclose(vectors_of(answer), vectors_of(expected), atol=1e-5)
    for expected, answer in zip(alone[100:], at_once[100:], strict=True):
        scores = [[r["relevance_score"] for r in one.json()["results"]] for one in (expected, answer)]
        np.testing.assert_allclose(scores[1], scores[0], atol=1e-5)


class Client:
    """One connection below HTTP: sends a body, may leave, keeps what it was answered."""

    def __init__(self, app, body: bytes) -> None:
        self._app = app
        self._messages = [{"type": "http.request", "body": body, "more_body": False}]
        self.left = asyncio.Event()
        self.answers = []

    async def _receive(self):
        if self._messages:
            return self._messages.pop()
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        self.answers.append(message)

    async def run(self):
        scope = {"type": "http", "method": "POST", "path": "/v1/embeddings", "headers": [], "query_string": b""}
        await self._app(scope, self._receive, self._send)


def test_b102_work_of_clients_that_left_is_not_done(dummy, caplog):
    server, engine = dummy(batch_size=8)
    body = b'{"input": ["a", "b", "c", "d", "e", "f", "g", "h"]}'
    faults = []

    async def main(client):
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        with gated(engine) as gate:
            gone = [Client(server.app, body) for _ in range(300)]
            tasks = [asyncio.create_task(one.run()) for one in gone]
            await until(lambda: engine.overload_status().queue_absolute >= 298 * 8)  # one computes, one may be ahead
            for one in gone:
                one.left.set()
            await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)
            waiting = engine.overload_status().queue_absolute
            normal = asyncio.create_task(client.post("/v1/embeddings", json={"input": "x"}))
            await until(lambda: engine.overload_status().queue_absolute or normal.done())
            gate.open()
            answer = await asyncio.wait_for(normal, WAIT_S)
            metrics = (await client.get("/metrics")).text
        return gone, waiting, len(gate.batches), answer, metrics

    gone, waiting, batches, answer, metrics = server.run(main)
    assert not any(one.answers for one in gone)
    assert waiting == 0
    assert batches <= 3
    assert answer.status_code == 200
    assert 'infinity_queue_items{model="some/dummy"} 0.0' in metrics
    assert "infinity_abandoned_requests_total 300.0" in metrics
    assert not faults
    assert "InvalidStateError" not in caplog.text


def test_b104_what_does_not_fit_is_refused_at_once_and_what_was_accepted_is_answered(dummy):
    server, engine = dummy(queue_size=100, batch_size=10)
    bodies = [{"input": [f"request {number} text {item}" for item in range(16)]} for number in range(50)]

    async def main(client):
        with gated(engine) as gate:
            tasks = [asyncio.create_task(client.post("/v1/embeddings", json=body)) for body in bodies]
            await until(lambda: sum(task.done() for task in tasks) >= 40)  # before anything was computed
            early = [task.result() for task in tasks if task.done()]
            gate.open()
            answers = await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)
        return early, answers, await client.post("/v1/embeddings", json=bodies[0])

    early, answers, later = server.run(main)
    assert {answer.status_code for answer in early} == {429}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in early)
    accepted = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert accepted
    assert {answer.status_code for answer in answers} == {200, 429}
    assert later.status_code == 200
    for number in accepted:
        np.testing.assert_array_equal(vectors_of(answers[number]), server.embed(bodies[number]["input"]))


def test_b104_a_request_larger_than_the_line_is_served_when_nothing_waits(dummy):
    server, _ = dummy(queue_size=100)
    assert server.embed(["x"] * 500).shape == (500, 384)


@pytest.mark.parametrize("path", ["/health", "/readyz", "/v2/health/ready"])
def test_b106_health_is_503_while_loading_200_when_ready_503_while_draining(engines, path):
    server = Served(engines["embed"], ready=False)
    assert server.get(path).status_code == 503
    assert int(server.post("/v1/embeddings", input="x").headers["retry-after"]) >= 1
    ready = Served(engines["embed"])
    assert ready.get(path).status_code == 200
    ready.lifecycle.drain()
    assert ready.get(path).status_code == 503


@pytest.mark.parametrize("path", ["/health", "/readyz"])
def test_b106_a_server_without_models_is_not_healthy(path):
    server = Served(ready=False)
    server.lifecycle.open(())
    assert server.get(path).status_code == 503


def test_b106_health_is_503_while_the_worker_is_dead_and_200_once_it_is_back(dummy):
    server, engine = dummy()

    async def main(client):
        with poisoned(engine, Death("gone")):
            for _ in range(2):  # the first successor comes at once, the second after a pause
                await until(lambda: engine.is_healthy)
                assert (await client.post("/v1/embeddings", json={"input": POISON})).status_code == 503
            assert (await client.get("/health")).status_code == 503
            assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 503
            assert (await client.get("/livez")).status_code == 200
        await asyncio.wait_for(until_status(client, "/health", 200), WAIT_S)
        assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 200

    server.run(main)


def test_b106_one_dead_model_of_two_makes_the_server_unhealthy_and_the_other_still_answers(start):
    dead, alive = (start(f"some/{name}", engine="dummy") for name in ("dead", "alive"))
    server = Served(dead, alive)
    dead.stop()
    assert server.get("/health").status_code == 503
    assert server.post("/v1/embeddings", input="x", model="some/alive").status_code == 200
    message_of(server.post("/v1/embeddings", input="x", model="some/dead"), statuses=OUTAGE)


def test_b111_a_fault_while_the_answer_is_written_is_a_500_and_not_silence(dummy, monkeypatch):
    server, _ = dummy()

    def broken(*_, **__):
        raise TypeError("Object of type Secret is not JSON serializable")

    with monkeypatch.context() as patch:
        patch.setattr(openai, "json_response", broken)
        message = message_of(server.post("/v1/embeddings", input="x"), statuses=frozenset({500}))
        assert "Secret" not in message
    assert server.post("/v1/embeddings", input="x").status_code == 200
