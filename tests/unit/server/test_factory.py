from __future__ import annotations

import asyncio

import httpx
import pytest

from api.fake_engine import FakeArray, FakeEngine
from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.errors import MissingExtraError
from infinity_emb.server import create_server
from infinity_emb.server.loading import Loaded

ARGS = [EngineArgs(model_name_or_path="fake/model", served_model_name="fake/model")]


@pytest.fixture
def app(monkeypatch):
    pytest.importorskip("fastapi")
    engine = FakeEngine()

    async def load(_):
        return Loaded(FakeArray(engine))

    monkeypatch.setattr("infinity_emb.server.loading.load", load)
    created = create_server(engine_args_list=ARGS, url_prefix="/v1", api_key="secret", doc_extra={"title": "Mine"})
    return created, engine


def test_the_lifespan_loads_and_stops_the_engines(app):
    created, engine = app
    headers = {"authorization": "Bearer secret"}

    async def main():
        transport = httpx.ASGITransport(created)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client:
            assert (await client.get("/health")).status_code == 503
            async with created.router.lifespan_context(created):
                assert (await client.get("/health")).status_code == 200
                answer = await client.post("/v1/embeddings", json={"input": "x"})
                assert answer.json()["model"] == "fake/model"
                assert (await client.get("/docs")).status_code == 200
        assert not engine.is_healthy

    asyncio.run(main())


def test_the_document_is_ours(app):
    created, _ = app
    assert created.title == "Mine"
    assert "/v1/embeddings" in created.openapi()["paths"]


def test_without_fastapi_the_error_says_what_to_install(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(MissingExtraError, match=r"infinity_emb\[server\]"):
        create_server(engine_args_list=ARGS)
