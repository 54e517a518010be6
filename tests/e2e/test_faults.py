"""An input that breaks the model fails alone, in the real server."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import httpx
import pytest

from serving import serve


@pytest.fixture(scope="module")
def faulty_server(minilm_folder):
    program = [sys.executable, str(Path(__file__).parent / "faulty.py")]
    with serve("--model-id", str(minilm_folder), "--engine", "openvino", program=program) as server:
        server.wait_until_ready()
        yield server


def test_only_the_guilty_request_fails_and_the_next_one_is_served(faulty_server) -> None:
    async def send() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=faulty_server.url, timeout=60) as client:
            texts = [["good morning", "a good day"], ["fine", "boom"], ["all well"], ["boom"], ["still here"] * 5]
            return list(await asyncio.gather(*(client.post("/v1/embeddings", json={"input": t}) for t in texts)))

    answers = asyncio.run(send())
    assert [answer.status_code for answer in answers] == [200, 500, 200, 500, 200]
    assert "item 1" in answers[1].json()["error"]["message"]
    assert "Traceback" not in answers[1].text
    assert httpx.post(f"{faulty_server.url}/v1/embeddings", json={"input": "ok"}).status_code == 200
    assert httpx.get(f"{faulty_server.url}/health").status_code == 200
