"""The real ASGI application around real engines, in process, and a blocking client for it."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import httpx
import numpy as np

from infinity_emb import AsyncEngineArray
from infinity_emb.metrics import HttpMetrics
from infinity_emb.server.app import Application, model_gauges
from infinity_emb.server.lifecycle import Lifecycle, Models
from infinity_emb.server.settings import HttpSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from infinity_emb import AsyncEmbeddingEngine

REFUSED = frozenset({400, 422})


class Served:
    """An application that answers for started engines."""

    def __init__(self, *engines: AsyncEmbeddingEngine, ready: bool = True, **options: Any) -> None:
        self.lifecycle = Lifecycle([engine.card.served_name for engine in engines])
        if ready:
            self.lifecycle.open(AsyncEngineArray(engines))
        models = Models(self.lifecycle)
        metrics = HttpMetrics()
        metrics.watch_models(lambda: model_gauges(models))
        self.app = Application(models, HttpSettings(**options), metrics)

    def run(self, main: Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]) -> Any:
        async def inside() -> Any:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://testserver", timeout=60) as client:
                return await main(client)

        return asyncio.run(inside())

    def get(self, path: str) -> httpx.Response:
        return self.run(lambda client: client.get(path))

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.run(lambda client: client.post(path, json=body))

    def post_raw(self, path: str, content: bytes) -> httpx.Response:
        headers = {"content-type": "application/json"}
        return self.run(lambda client: client.post(path, content=content, headers=headers))

    def post_all(self, path: str, bodies: list[dict]) -> list[httpx.Response]:
        """All at once, in one event loop."""

        async def main(client):
            return await asyncio.gather(*(client.post(path, json=body) for body in bodies))

        return self.run(main)

    def embed(self, inputs: Any, **fields: Any) -> np.ndarray:
        """Vectors `[items, dim]` of a request that must succeed."""
        return vectors_of(self.post("/v1/embeddings", input=inputs, **fields))

    def rerank(self, query: str, documents: list[Any], **fields: Any) -> np.ndarray:
        """Scores in the order of the documents, of a request that must succeed."""
        answer = self.post("/rerank", query=query, documents=documents, **fields)
        assert answer.status_code == 200, answer.text
        results = answer.json()["results"]
        assert sorted(result["index"] for result in results) == list(range(len(documents)))
        return np.array([r["relevance_score"] for r in sorted(results, key=lambda result: result["index"])])

    def classify(self, inputs: Any, **fields: Any) -> list[dict[str, float]]:
        """Label → score of each input, of a request that must succeed."""
        answer = self.post("/classify", input=inputs, **fields)
        assert answer.status_code == 200, answer.text
        return [{entry["label"]: entry["score"] for entry in row} for row in answer.json()["data"]]


def vectors_of(answer: httpx.Response) -> np.ndarray:
    """Vectors of an answer that must be right in form: numbered in order, flat, all numbers."""
    assert answer.status_code == 200, answer.text
    data = answer.json()["data"]
    assert [item["index"] for item in data] == list(range(len(data)))
    return np.array([numbers_of(item["embedding"]) for item in data])


def numbers_of(embedding: Any) -> list[float]:
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4").tolist()
    assert all(type(number) in {int, float} for number in embedding)
    return embedding


def message_of(answer: httpx.Response, *, statuses: frozenset[int] = REFUSED) -> str:
    """`error.message` of a refusal, from a body that is strict JSON."""
    assert answer.status_code in statuses, answer.text
    message = json.loads(answer.text, parse_constant=_no_constant)["error"]["message"]
    assert isinstance(message, str)
    assert message
    return message


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Cosine of each row with its partner."""
    left, right = np.asarray(left, np.float64), np.asarray(right, np.float64)
    return (left * right).sum(axis=-1) / (np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1))
