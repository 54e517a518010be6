"""The example answers questions about the standard library, through a real server."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "search_docstrings.py"
# A part of the library that holds the answers and plenty of others, to bound the time.
EVERY = 12
MODULES = ("argparse", "optparse", "getopt", "gzip", "smtplib", "random", "timeit", "json", "shutil")


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("search_docstrings", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["search_docstrings"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def library(example, documented_server):
    found = example.collect(Path(sysconfig.get_path("stdlib")))
    assert len(found) > 5000
    chosen = [item for number, item in enumerate(found) if number % EVERY == 0 or item.name.split(".")[0] in MODULES]
    return chosen, example.embed(documented_server.url, [item.text for item in chosen])


@pytest.mark.parametrize(
    ("question", "modules"),
    [
        ("parse command line arguments", {"argparse", "optparse", "getopt"}),
        ("compress a file with gzip", {"gzip"}),
        ("send an email over SMTP", {"smtplib"}),
        ("pick a random element from a list", {"random"}),
        ("measure how long a small piece of code takes", {"timeit"}),
    ],
)
def test_a_question_finds_the_right_module_among_the_best_five(
    example, library, documented_server, question, modules
) -> None:
    best = example.search(documented_server.url, question, *library)
    assert modules & {item.name.split(".")[0] for _, item in best}
    scores = [score for score, _ in best]
    assert scores == sorted(scores, reverse=True)


def test_without_a_server_it_says_how_to_start_one() -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "anything", "--url", "http://127.0.0.1:9", "--limit", "3"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "make serve" in done.stderr
    assert "Traceback" not in done.stderr
