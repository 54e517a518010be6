"""The ASGI application around an engine double, and a client that talks to it in process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from api.fake_engine import FakeArray, FakeEngine
from infinity_emb.metrics import HttpMetrics
from infinity_emb.server.app import Application, model_gauges
from infinity_emb.server.lifecycle import Lifecycle, Models
from infinity_emb.server.settings import HttpSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Served:
    """An application and a blocking client for it."""

    def __init__(self, *engines: FakeEngine, ready: bool = True, only: str | None = None, **options: Any) -> None:
        self.engines = engines or (FakeEngine(),)
        self.engine = self.engines[0]
        self.lifecycle = Lifecycle([engine.name for engine in self.engines])
        if ready:
            self.lifecycle.open(FakeArray(*self.engines))
        models = Models(self.lifecycle, only)
        metrics = HttpMetrics()
        metrics.watch_models(lambda: model_gauges(models))
        self.app = Application(models, HttpSettings(**options), metrics)

    def client(self) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=True)
        return httpx.AsyncClient(transport=transport, base_url="http://testserver")

    def run(self, main: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
        async def inside() -> Any:
            async with self.client() as client:
                return await main(client)

        return asyncio.run(inside())

    def request(self, method: str, path: str, **rest: Any) -> httpx.Response:
        return self.run(lambda client: client.request(method, path, **rest))

    def get(self, path: str, **rest: Any) -> httpx.Response:
        return self.request("GET", path, **rest)

    def post(self, path: str, body: Any = None, **rest: Any) -> httpx.Response:
        return self.request("POST", path, json=body, **rest)

    def post_raw(self, path: str, content: bytes, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", path, content=content, headers={"content-type": "application/json", **named})


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
def serve() -> type[Served]:
    return Served
