from __future__ import annotations

import time

import pytest

from infinity_emb.errors import CheckpointError, ConfigurationError, HubError, LoadError, StorageError
from infinity_emb.progress import PROGRESS

READY = ["/health", "/ping", "/readyz", "/v2/health/ready", "/startupz"]
ALIVE = ["/livez", "/v2/health/live"]


@pytest.mark.parametrize("path", READY + ALIVE)
def test_a_ready_server_is_well(served, path):
    assert served.get(path).status_code == 200


def test_health_tells_the_time_as_infinity_does(served):
    assert served.get("/health").json()["unix"] == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize("path", READY)
def test_a_loading_server_is_not_ready(serve, path):
    answer = serve(ready=False).get(path)
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert answer.json()["status"] == "loading"


@pytest.mark.parametrize("path", ALIVE)
def test_a_loading_server_is_alive(serve, path):
    assert serve(ready=False).get(path).status_code == 200


@pytest.mark.parametrize("path", ["/v1/embeddings", "/rerank", "/embed", "/classify"])
def test_requests_while_loading_are_503_with_retry_after(serve, path):
    answer = serve(ready=False).post(path, {})
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert serve(ready=False).get("/v1/models").status_code == 503


def test_startup_progress_names_the_models(serve):
    body = serve(ready=False).get("/startupz").json()
    assert body["models"] == [{"id": "fake/model", "status": "loading"}]


def test_startup_progress_tells_what_is_fetched(serve):
    server = serve(ready=False)
    PROGRESS.begin("fake/model")
    try:
        PROGRESS.fetched(30, 100)
        PROGRESS.fetched(20, 100)  # another count of the same files
        (model,) = server.get("/startupz").json()["models"]
        assert model["step"] == "fetching"
        assert (model["fetched_bytes"], model["total_bytes"]) == (30, 100)
        PROGRESS.load()
        assert server.get("/startupz").json()["models"][0]["step"] == "loading"
    finally:
        PROGRESS.end()
    assert "step" not in server.get("/startupz").json()["models"][0]


def test_a_failed_start_says_why(serve):
    server = serve(ready=False)
    server.lifecycle.fail(CheckpointError("config.json is missing"))
    assert "files are broken, incomplete" in server.get("/startupz").json()["error"]
    assert server.get("/health").json()["status"] == "failed"


@pytest.mark.parametrize("kind", [CheckpointError, HubError, StorageError, LoadError, ConfigurationError, ValueError])
@pytest.mark.parametrize("path", ["/startupz", "/health", "/readyz", "/livez", "/"])
def test_a_failed_start_shows_no_path_of_the_machine(serve, kind, path):
    server = serve(ready=False, redirect_slash="")
    server.lifecycle.fail(kind("/home/anna/models/secret/config.json is broken"))
    answer = server.get(path)
    assert "anna" not in answer.text
    assert "config.json" not in answer.text


def test_a_dead_engine_turns_health_but_not_life(served):
    served.engine.is_healthy = False
    assert served.get("/health").status_code == 503
    assert served.get("/readyz").json()["status"] == "down"
    assert served.get("/livez").status_code == 200
    served.engine.is_healthy = True
    assert served.get("/health").status_code == 200


def test_a_draining_server_refuses_new_work(served):
    served.lifecycle.drain()
    answer = served.post("/v1/embeddings", {"input": "x"})
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdigit()
    assert served.get("/readyz").status_code == 503


def test_a_port_without_engines_is_not_healthy(serve):
    assert serve(only="nobody").get("/health").status_code == 503


def test_the_origin_leads_to_the_documentation_or_is_a_probe(served, serve):
    assert served.get("/").headers["location"] == "/docs"
    assert serve(redirect_slash="").get("/").json().keys() == {"unix"}


def test_metrics_keep_the_four_names_of_infinity_and_add_ours(served):
    served.post("/v1/embeddings", {"input": ["x", "word " * 50]})
    served.post("/v1/embeddings", {"input": []})
    served.get("/nope")
    text = served.get("/metrics").text
    for line in (
        'http_requests_total{handler="/v1/embeddings",method="POST",status="2xx"} 1.0',
        'http_requests_total{handler="none",method="OTHER",status="4xx"} 1.0',
        'http_request_duration_seconds_count{handler="/v1/embeddings",method="POST"} 2.0',
        "http_request_duration_highr_seconds_count",
        'http_request_size_bytes_count{handler="/v1/embeddings"} 2.0',
        'http_response_size_bytes_count{handler="/v1/embeddings"} 2.0',
        'infinity_items_total{model="fake/model",task="embed"} 2.0',
        'infinity_tokens_total{model="fake/model",task="embed"} 19.0',
        'infinity_truncated_items_total{model="fake/model",task="embed"} 1.0',
        'infinity_refused_requests_total{code="invalid_body"} 1.0',
        'infinity_queue_items{model="fake/model"} 8.0',
        'infinity_queue_tokens{model="fake/model"} 64.0',
        'infinity_model_up{model="fake/model"} 1.0',
        "process_resident_memory_bytes",
    ):
        assert line in text, line
