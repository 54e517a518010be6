"""Starting: what a newcomer sees, and what goes wrong in words."""

from __future__ import annotations

import socket

import httpx

from serving import serve


def test_start_up_block_tells_what_is_served_and_what_to_try(minilm_server) -> None:
    assert minilm_server.url.rpartition(":")[2] in minilm_server.output
    for word in ("minilm", "openvino", "float32", "384", "256", "threads", "curl"):
        assert word in minilm_server.output


def test_unknown_model_is_one_message(tmp_path) -> None:
    with serve("--model-id", str(tmp_path / "nothing-here")) as server:
        assert server.process.wait(60) == 1
    assert "nothing-here" in server.output
    assert "Traceback" not in server.output


def test_port_in_use_is_one_message(minilm_folder) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with serve("--model-id", str(minilm_folder), "--port", str(port)) as server:
            assert server.process.wait(60) == 1
    assert str(port) in server.output
    assert "Traceback" not in server.output


def test_two_models_in_one_server_are_told_apart(minilm_folder) -> None:
    arguments = ["--model-id", str(minilm_folder), "--served-model-name", "real"]
    arguments += ["--model-id", "anything", "--served-model-name", "fake", "--engine", "openvino", "--engine", "dummy"]
    with serve(*arguments) as server:
        server.wait_until_ready()
        real, fake = (
            httpx.post(f"{server.url}/v1/embeddings", json={"input": "hi", "model": name}).json()
            for name in ("real", "fake")
        )
        assert real["model"] == "real"
        assert real["data"][0]["embedding"] != fake["data"][0]["embedding"]
        wrong = httpx.post(f"{server.url}/v1/embeddings", json={"input": "hi", "model": "other"})
        assert wrong.status_code in {400, 404}
        assert "real" in wrong.json()["error"]["message"]


def test_preload_only_ends_with_0(minilm_folder) -> None:
    with serve("--model-id", str(minilm_folder), "--preload-only") as server:
        assert server.process.wait(60) == 0
