"""A real server on loopback around an engine double: bind, load, serve, drain, end."""

# ruff: noqa: ASYNC110 - the loops wait for a server in the same event loop

from __future__ import annotations

import asyncio
import os
import signal
import socket

import httpx
import pytest

from api.fake_engine import FakeArray, FakeEngine
from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.config.server_args import ServerArgs
from infinity_emb.errors import CheckpointError, ConfigurationError
from infinity_emb.server import process
from infinity_emb.server.launch import run
from infinity_emb.server.listening import bind
from infinity_emb.server.loading import Loaded

FIRST = EngineArgs(model_name_or_path="a", served_model_name="a")
SECOND = EngineArgs(model_name_or_path="b", served_model_name="b")


async def until_ready(client):
    while (await client.get("/health")).status_code != 200:
        await asyncio.sleep(0)


def test_the_port_answers_while_loading_and_serves_afterwards(monkeypatch, running):
    async def main():
        server = running(monkeypatch)
        serving = asyncio.create_task(server.process.serve())
        async with httpx.AsyncClient(base_url=server.urls[0]) as client:
            assert (await client.get("/livez")).status_code == 200
            assert (await client.get("/health")).status_code == 503
            server.may_load.set()
            await until_ready(client)
            assert (await client.post("/v1/embeddings", json={"input": "x"})).status_code == 200
            assert [card.served_name for card in server.ready[0]] == ["a"]
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == 0
        assert not server.engines[0].is_healthy

    asyncio.run(main())


def test_a_signal_lets_requests_in_flight_finish_and_refuses_new_ones(monkeypatch, running):
    async def main():
        server = running(monkeypatch)
        engine = server.engines[0]
        server.may_load.set()
        serving = asyncio.create_task(server.process.serve())
        async with httpx.AsyncClient(base_url=server.urls[0]) as client:
            await until_ready(client)
            engine.hold = asyncio.Event()
            waiting = asyncio.create_task(client.post("/v1/embeddings", json={"input": "x"}))
            while not engine.calls:
                await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGTERM)
            while (await client.get("/readyz")).status_code == 200:
                await asyncio.sleep(0)
            refused = await client.post("/v1/embeddings", json={"input": "y"})
            assert refused.status_code == 503
            assert refused.headers["retry-after"].isdigit()
            engine.hold.set()
            assert (await waiting).status_code == 200
        assert await serving == 0

    asyncio.run(main())


def test_what_is_not_done_within_the_grace_period_gets_503(monkeypatch, running):
    async def main():
        server = running(monkeypatch, shutdown_grace_s=0.05)
        server.may_load.set()
        serving = asyncio.create_task(server.process.serve())
        async with httpx.AsyncClient(base_url=server.urls[0]) as client:
            await until_ready(client)
            server.engines[0].hold = asyncio.Event()
            waiting = asyncio.create_task(client.post("/v1/embeddings", json={"input": "x"}))
            while not server.engines[0].calls:
                await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGINT)
            assert (await waiting).status_code == 503
        assert await serving == 0

    asyncio.run(main())


def test_a_signal_while_loading_ends_at_once(monkeypatch, running):
    async def main():
        server = running(monkeypatch)
        serving = asyncio.create_task(server.process.serve())
        async with httpx.AsyncClient(base_url=server.urls[0]) as client:
            assert (await client.get("/health")).status_code == 503
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == 0

    asyncio.run(main())


def test_a_model_that_cannot_be_loaded_ends_the_server_with_its_error(monkeypatch, running):
    async def main():
        server = running(monkeypatch)
        server.load_error = CheckpointError("config.json is missing", param="config.json")
        server.may_load.set()
        with pytest.raises(CheckpointError, match=r"config\.json is missing"):
            await server.process.serve()

    asyncio.run(main())


def test_each_model_answers_alone_on_its_own_port(monkeypatch, running):
    async def main():
        server = running(monkeypatch, (FIRST, SECOND), ports=free_ports(2))
        server.may_load.set()
        serving = asyncio.create_task(server.process.serve())
        for url, name in zip(server.urls, "ab", strict=True):
            async with httpx.AsyncClient(base_url=url) as client:
                await until_ready(client)
                answer = await client.post("/v1/embeddings", json={"input": "x", "model": "a"})
                assert answer.json()["model"] == name
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == 0

    asyncio.run(main())


def free_ports(count):
    """Ports that were free a moment ago."""
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = tuple(entry.getsockname()[1] for entry in opened)
    for entry in opened:
        entry.close()
    return ports


def test_a_port_in_use_is_told_before_anything_is_loaded(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(process, "load", None)
        with pytest.raises(ConfigurationError, match=f"Port {port} .* in use"):
            run([FIRST], ServerArgs(host="127.0.0.1", ports=(port,)))


def test_a_host_that_is_not_this_machine_is_an_error():
    with pytest.raises(ConfigurationError, match=r"192\.0\.2\.1"):
        bind(ServerArgs(host="192.0.2.1", ports=(0,)), 1)


def test_a_stale_unix_socket_is_replaced_and_a_live_one_is_not(tmp_path):
    path = str(tmp_path / "server.sock")
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(path)
    stale.close()
    (bound,) = bind(ServerArgs(uds=path), 1)
    with bound.socket, pytest.raises(ConfigurationError, match="cannot be bound"):
        bind(ServerArgs(uds=path), 1)


def test_preload_only_loads_and_ends(monkeypatch):
    seen = []

    async def load(engine_args_list):
        seen.extend(engine_args_list)
        return Loaded(FakeArray(FakeEngine()))

    monkeypatch.setattr("infinity_emb.server.loading.load", load)
    assert run([FIRST], ServerArgs(preload_only=True)) == 0
    assert seen == [FIRST]
