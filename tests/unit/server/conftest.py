"""A real server on loopback around an engine double."""

from __future__ import annotations

import asyncio

import pytest

from api.fake_engine import FakeArray, FakeEngine
from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.config.server_args import ServerArgs
from infinity_emb.server import process
from infinity_emb.server.listening import bind
from infinity_emb.server.loading import Loaded

FIRST = EngineArgs(model_name_or_path="a", served_model_name="a")


class Running:
    """A server process in the loop of the test."""

    def __init__(self, monkeypatch, engine_args=(FIRST,), ports=(0,), **options):
        self.server_args = ServerArgs(host="127.0.0.1", ports=ports, **options)
        self.engines = [FakeEngine(name=args.served_model_name) for args in engine_args]
        self.may_load = asyncio.Event()
        self.load_error = None
        self.ready = []
        bound = bind(self.server_args, len(engine_args))
        self.ports = [entry.socket.getsockname()[1] for entry in bound]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        monkeypatch.setattr(process, "load", self._load)
        self.process = process.ServerProcess(engine_args, self.server_args, bound, self.ready.append)

    async def _load(self, _):
        await self.may_load.wait()
        if self.load_error is not None:
            raise self.load_error
        return Loaded(FakeArray(*self.engines))


@pytest.fixture
def running():
    return Running
