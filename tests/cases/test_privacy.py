"""Nothing of what users send is in the log, whatever goes wrong; and what operators see holds none of it either."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING

import pytest

from cases.faults import gated, poisoned
from cases.served import Served
from infinity_emb.config.choices import LogFormat, LogLevel
from infinity_emb.config.log import JsonFormatter, configure_logging

if TYPE_CHECKING:
    import httpx

SECRET = "zanzibar-4711"


@pytest.fixture
def dummy(start):
    return start("anything", engine="dummy", served_model_name="plain", max_client_batch_size=5)


@pytest.fixture
def everything_logged(caplog):
    caplog.set_level(logging.DEBUG)
    return lambda: "\n".join(JsonFormatter().format(r) for r in caplog.records if r.name.startswith("infinity_emb"))


BODIES = [
    {"input": [SECRET]},
    {"input": [SECRET, "boom"]},
    {"input": [SECRET] * 9},
    {"input": [SECRET, None]},
    {"input": {"text": SECRET}},
    {"input": [SECRET], "dimensions": 10_000},
    {"input": [SECRET], "encoding_format": SECRET},
    {"input": [SECRET], SECRET: 1},
    {"input": []},
]


def test_no_text_of_a_request_is_in_the_log(dummy, everything_logged):
    server = Served(dummy, access_log=True)
    paths = ["/v1/embeddings", "/embed", "/rerank", "/classify", "/v2/embed", "/tokenize"]
    with poisoned(dummy, ValueError("the model cannot do that")):
        for path in paths:
            for body in BODIES:
                server.run(lambda client, p=path, b=body: client.post(p, json=b, headers={"x-request-id": "r-1"}))
            server.post_raw(path, b'{"input": "' + SECRET.encode())
            server.post_raw(path, SECRET.encode())
    assert server.get(f"/{SECRET}").status_code == 404
    assert server.get(f"/v1/embeddings?q={SECRET}").status_code == 405
    log = everything_logged()
    assert '"request_id": "r-1"' in log
    assert SECRET not in log


def test_the_access_log_is_json_with_the_request_id_when_asked_for(dummy, capsys):
    configure_logging(LogLevel.INFO, LogFormat.JSON)
    try:
        server = Served(dummy, access_log=True)
        headers = {"x-request-id": "abc-1"}
        server.run(lambda client: client.post("/v1/embeddings", json={"input": "x"}, headers=headers))
    finally:
        for name in ("infinity_emb", "uvicorn"):
            logging.getLogger(name).handlers[:] = []
            logging.getLogger(name).propagate = True
    (line,) = [json.loads(text) for text in capsys.readouterr().err.splitlines() if "request_id" in text]
    assert line.items() >= {"request_id": "abc-1", "method": "POST", "handler": "/v1/embeddings", "status": 200}.items()
    assert line["took_ms"] > 0
    assert line["bytes_in"] > 0


def test_there_is_no_line_unless_asked_for(dummy, everything_logged):
    Served(dummy).post("/v1/embeddings", input="x")
    assert "request_id" not in everything_logged()


def test_operators_see_the_waiting_line_without_its_texts(dummy):
    server = Served(dummy, operator_keys=("op",), api_keys=("client",))
    texts = [SECRET, "two", "three"]

    async def main(client: httpx.AsyncClient) -> httpx.Response:
        keys = {"x-api-key": "client"}
        posts = [
            asyncio.ensure_future(client.post("/v1/embeddings", json={"input": texts}, headers=keys)) for _ in "abc"
        ]
        while dummy.overload_status().queue_absolute < 6:  # noqa: ASYNC110 - the engine's thread fills the line
            await asyncio.sleep(0.01)  # the engine has no event for it
        answer = await client.get("/debug", headers={"x-api-key": "op"})
        gate.open()
        assert {post.status_code for post in await asyncio.gather(*posts)} == {200}
        return answer

    dummy._runtime._dispatcher._batcher._max_items = 3  # one request a batch: the first computes, the others wait
    with gated(dummy) as gate:
        answer = server.run(main)
    assert answer.status_code == 200
    (model,) = answer.json()["models"]
    assert model["id"] == "plain"
    waiting = model["waiting"]
    assert {row["items"] for row in waiting} == {3}
    assert all(row["waited_s"] >= 0 and row["waiting_tokens"] > 0 for row in waiting if row["waiting_items"])
    assert len(answer.json()["in_flight"]) == 3
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    ("options", "key", "status"),
    [
        ({}, "", 404),
        ({"api_keys": ("client",)}, "client", 404),
        ({"operator_keys": ("op",)}, "", 401),
        ({"operator_keys": ("op",), "api_keys": ("client",)}, "client", 401),
        ({"operator_keys": ("op",), "api_keys": ("client",)}, "op", 200),
    ],
)
def test_debug_is_for_operators_only(dummy, options, key, status):
    server = Served(dummy, **options)
    headers = {"x-api-key": key} if key else {}
    assert server.run(lambda client: client.get("/debug", headers=headers)).status_code == status


def test_an_operators_key_alone_does_not_lock_clients_out_and_opens_everything_where_keys_are_set(dummy):
    assert Served(dummy, operator_keys=("op",)).post("/v1/embeddings", input="x").status_code == 200
    server = Served(dummy, operator_keys=("op",), api_keys=("client",))
    for key, status in (("op", 200), ("client", 200), ("other", 401)):
        headers = {"x-api-key": key}
        found = server.run(lambda client, h=headers: client.post("/v1/embeddings", json={"input": "x"}, headers=h))
        assert found.status_code == status
