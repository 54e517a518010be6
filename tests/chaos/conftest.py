from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tiny import tiny_bert

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "e2e")]  # where it lies

from serving import serve  # noqa: E402 - found through the line above

# How long the load lasts: short in CI, 1800 with `make soak`.
CHAOS_S = float(os.environ.get("INFINITY_TEST_CHAOS_S", "30"))


def pytest_collection_modifyitems(items) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(180 + 2 * CHAOS_S))


@pytest.fixture
def chaos_s() -> float:
    return CHAOS_S


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory) -> Path:
    """So small that the server is the bottleneck, not the model."""
    return tiny_bert(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture
def serve_faulty(tiny_folder):
    """The command with the faulty backend: `with serve_faulty("--queue-size", "200") as server`."""
    program = [sys.executable, str(Path(__file__).parent / "faulty_server.py")]

    def start(*arguments: str):
        given = [
            "--model-id",
            str(tiny_folder),
            "--engine",
            "openvino",
            "--dtype",
            "float32",
            "--fidelity",
            "0",
            *arguments,
        ]
        return serve(*given, program=program)

    return start
