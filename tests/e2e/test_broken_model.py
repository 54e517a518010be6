"""Of two models one is broken: it is named, the other one answers, and nobody is told that all is well."""

from __future__ import annotations

import threading
import time

import httpx
import pytest

from serving import READY_TIMEOUT_S, serve
from tiny import tiny_bert


@pytest.fixture(scope="module")
def half_broken(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    good, bad = tiny_bert(root / "good"), tiny_bert(root / "bad")
    weights = bad / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    arguments = ["--model-id", str(bad), "--served-model-name", "bad", "--model-id", str(good)]
    with serve(*arguments, "--served-model-name", "good") as server:
        until_s = time.monotonic() + READY_TIMEOUT_S
        while not started(server) and time.monotonic() < until_s:
            threading.Event().wait(0.1)
        yield server


def started(server) -> bool:
    try:
        return httpx.get(f"{server.url}/startupz").status_code == 200
    except httpx.TransportError:
        return False


def embed(server, **model) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/embeddings", json={"input": "tea", **model}, timeout=30)


def test_the_other_model_answers(half_broken):
    assert embed(half_broken, model="good").status_code == 200
    assert embed(half_broken).json()["model"] == "good"


def test_health_is_503_and_names_the_broken_one(half_broken):
    for path in ("/health", "/readyz"):
        answer = httpx.get(f"{half_broken.url}{path}")
        assert (answer.status_code, answer.json()["models"]) == (503, ["bad"])
    assert httpx.get(f"{half_broken.url}/livez").status_code == 200
    models = httpx.get(f"{half_broken.url}/startupz").json()["models"]
    assert models == [{"id": "bad", "status": "failed"}, {"id": "good", "status": "ready"}]


def test_the_broken_model_is_not_answered_by_the_other_one(half_broken):
    answer = embed(half_broken, model="bad")
    assert answer.status_code == 503
    assert "'bad'" in answer.json()["error"]["message"]
    assert int(answer.headers["retry-after"]) >= 1
    assert embed(half_broken, model="unknown").status_code == 400


def test_the_log_says_why(half_broken):
    assert "safetensors" in half_broken.output
    assert "Traceback" not in half_broken.output


def test_without_any_model_the_command_ends_with_1(tmp_path):
    with serve("--model-id", str(tmp_path / "a"), "--model-id", str(tmp_path / "b")) as server:
        assert server.process.wait(60) == 1
    assert "Traceback" not in server.output


def test_preload_only_needs_every_model(tmp_path):
    good = tiny_bert(tmp_path / "good")
    with serve("--model-id", str(good), "--model-id", str(tmp_path / "b"), "--preload-only") as server:
        assert server.process.wait(60) == 1
