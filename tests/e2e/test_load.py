"""Many callers at once: every answer is right, in order, and none is lost."""

from __future__ import annotations

import asyncio
import base64
import random
import time

import httpx
import numpy as np
import pytest

from serving import serve
from tiny import tiny_bert
from tiny_tokenizers import CORPUS

REQUESTS = 1000
CONNECTIONS = 400  # at once; the others stand in line behind them in the client


def vectors_of(answer: dict) -> np.ndarray:
    assert [item["index"] for item in answer["data"]] == list(range(len(answer["data"])))
    return np.stack([np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in answer["data"]])


async def post_all(url: str, bodies: list[list[str]]) -> list[httpx.Response]:
    limits = httpx.Limits(max_connections=CONNECTIONS)
    async with httpx.AsyncClient(base_url=url, timeout=300, limits=limits) as client:
        tasks = [client.post("/v1/embeddings", json={"input": texts, "encoding_format": "base64"}) for texts in bodies]
        return await asyncio.gather(*tasks)


@pytest.fixture(scope="module")
def tiny_server(tmp_path_factory):
    """So small that a thousand requests are more than the server's share of the work, not the model's."""
    folder = tiny_bert(tmp_path_factory.mktemp("tiny") / "bert")
    with serve("--model-id", str(folder), "--queue-size", str(64 * REQUESTS)) as server:
        server.wait_until_ready()
        yield server


@pytest.mark.timeout(300)
def test_a_thousand_concurrent_requests_get_their_own_vectors(tiny_server) -> None:
    chance = random.Random(5)
    pool = sorted({" ".join(chance.choices(CORPUS, k=chance.randint(1, 20))) for _ in range(200)})
    singles = asyncio.run(post_all(tiny_server.url, [[text] for text in pool]))
    alone = [vectors_of(answer.json())[0] for answer in singles]
    expected = dict(zip(pool, alone, strict=True))
    distances = np.abs(np.stack(alone)[:, None] - np.stack(alone)[None]).max(axis=2) + np.eye(len(pool))
    assert distances.min() > 1e-3  # a vector of another text would be noticed
    bodies = [[chance.choice(pool) for _ in range(chance.randint(1, 64))] for _ in range(REQUESTS)]
    answers = asyncio.run(post_all(tiny_server.url, bodies))
    assert len(answers) == REQUESTS
    worst = 0.0
    for texts, answer in zip(bodies, answers, strict=True):
        assert answer.status_code == 200, answer.text
        vectors = vectors_of(answer.json())
        assert vectors.shape == (len(texts), len(alone[0]))
        worst = max(worst, float(np.abs(vectors - np.stack([expected[text] for text in texts])).max()))
    assert worst <= 1e-5


def test_health_answers_while_batches_run(minilm_server) -> None:
    async def measure() -> list[float]:
        async with httpx.AsyncClient(base_url=minilm_server.url, timeout=120) as client:
            load = [client.post("/v1/embeddings", json={"input": ["word " * 200] * 32}) for _ in range(4)]
            work = asyncio.gather(*load)
            waits = []
            while not work.done() and len(waits) < 20:
                started_s = time.perf_counter()
                assert (await client.get("/health")).status_code == 200
                waits.append(time.perf_counter() - started_s)
                await asyncio.sleep(0)
            await work
            return waits

    assert max(asyncio.run(measure())) < 2.0  # KubeAI's probes give up after 2 s
