"""What the system does to a process: stopped for a while, killed, left without a place to write."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import httpx
import pytest

from serving import serve
from tiny import tiny_bert

HANG_LIMIT_S = 2


@pytest.fixture(scope="module")
def tiny_folder(tmp_path_factory):
    return str(tiny_bert(tmp_path_factory.mktemp("tiny") / "bert"))


def embed(url: str, statuses: list[int], count: int) -> None:
    with httpx.Client(timeout=60) as client:
        body = {"input": ["tea is hot"] * 64}
        statuses.extend(client.post(f"{url}/v1/embeddings", json=body).status_code for _ in range(count))


def test_a_server_that_is_stopped_and_continued_answers_everything_and_is_well(tiny_folder):
    """Longer than a batch may take: the clock went on, so a batch may count as hung, but nobody waits for ever."""
    with serve("--model-id", tiny_folder, "--hang-limit-s", str(HANG_LIMIT_S)) as server:
        server.wait_until_ready()
        statuses: list[int] = []
        clients = [threading.Thread(target=embed, args=(server.url, statuses, 40)) for _ in range(4)]
        for client in clients:
            client.start()
        server.process.send_signal(signal.SIGSTOP)
        threading.Event().wait(HANG_LIMIT_S + 1)
        server.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.join(60)
            assert not client.is_alive()
        server.wait_until_ready()
        assert len(statuses) == 160
        assert set(statuses) <= {200, 503}
        after: list[int] = []
        embed(server.url, after, 5)
        assert after == [200] * 5
        assert server.stop() == 0


def test_a_server_that_was_killed_starts_again_on_the_same_port(tiny_folder):
    with serve("--model-id", tiny_folder) as server:
        server.wait_until_ready()
        port = server.url.rpartition(":")[2]
        server.stop(signal.SIGKILL)
    with serve("--model-id", tiny_folder, "--port", port) as again:
        again.url = f"http://127.0.0.1:{port}"
        again.wait_until_ready()
        statuses: list[int] = []
        embed(again.url, statuses, 1)
        assert statuses == [200]


def test_a_local_model_needs_no_place_to_write(tiny_folder):
    """Neither home nor cache folders exist or can be made."""
    nowhere = dict.fromkeys(["HOME", "XDG_CACHE_HOME", "HF_HOME", "INFINITY_HOME"], "/proc/nowhere")
    with serve("--model-id", tiny_folder, **nowhere) as server:
        server.wait_until_ready()
        statuses: list[int] = []
        embed(server.url, statuses, 1)
        assert statuses == [200]


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 1 MiB, where this user may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if (
        sys.platform != "linux"
        or os.geteuid() != 0
        or subprocess.run(command, check=False, capture_output=True).returncode
    ):
        pytest.skip("mounting a small file system takes root rights")
    (folder / "filler").write_bytes(bytes(700 * 1024))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_costs_cached_vectors_and_no_request(tiny_folder, full_disk):
    with serve("--model-id", tiny_folder, "--vector-disk-cache", "--cache-folder", str(full_disk)) as server:
        server.wait_until_ready()
        with httpx.Client(timeout=60) as client:
            for number in range(30):
                texts = [f"tea {number} {place}" for place in range(200)]
                assert client.post(f"{server.url}/v1/embeddings", json={"input": texts}).status_code == 200
        assert httpx.get(f"{server.url}/health").status_code == 200
        assert server.stop() == 0
    assert "cannot be written" in server.output
    assert "Traceback" not in server.output
