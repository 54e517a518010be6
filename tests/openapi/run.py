"""`make test-openapi`: schemathesis reads the OpenAPI document of a real server and tries, with every check, to break it.

    python tests/openapi/run.py                     the dummy engine, one model a task, until 20 000 requests are sent
    python tests/openapi/run.py --model DIR         the same against one real model
    python tests/openapi/run.py --requests 2000 --seed 7

Rounds with fresh seeds are run until the server has counted so many requests. The exit code is 1 if any check failed.
"""

from __future__ import annotations

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "clients"))

from environments import CannotInstallError, Environment

from serving import serve

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMATHESIS = Environment("openapi", ("schemathesis>=4.32,<5",))
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")
KEY = "correct-horse"  # an operator's, so that /debug answers too; with a key set, every route is also tried without
EXAMPLES = 60  # a route and a round
DUMMIES = ("--engine", "dummy", *(part for task in ("embed", "rerank", "classify") for part in ("--model-id", task)))
TASKS = ("--task", "embed", "--task", "rerank", "--task", "classify")


@dataclass(frozen=True)
class Round:
    """One run of schemathesis.

    Attributes:
        requests: What the server counted.
        failures: Unique ones, and errors of schemathesis itself.
        took_s: Wall-clock time.
        output: Of the command.
    """

    requests: int
    failures: int
    took_s: float
    output: str


def counted(url: str, *, status: str = "") -> int:
    """Requests that the server has answered, with a status that begins so."""
    request = urllib.request.Request(f"{url}/metrics", headers={"authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    found = (re.fullmatch(rf'http_requests_total\{{.*status="({status}\w*)".*\}} (\S+)', line) for line in lines)
    return int(sum(float(match[2]) for match in found if match))


def tried(url: str, seed: int) -> Round:
    """Run every check once over every route."""
    before, started_s = counted(url), time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        program = SCHEMATHESIS.command(Path("-c"))[0]
        command = [str(Path(program).with_name("schemathesis")), "--config-file", str(CONFIGURATION), "run"]
        command += [f"{url}/openapi.json", "--checks", "all", "--max-examples", str(EXAMPLES), "--seed", str(seed)]
        command += ["--header", f"Authorization: Bearer {KEY}", "--continue-on-failure", "--no-color"]
        command += ["--report", "json", "--report-json-path", str(report), "--generation-database", "none"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if not report.is_file():
            raise SystemExit(f"schemathesis ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
        facts = json.loads(report.read_text("utf-8"))
    failures = facts["test_cases"]["unique_failures"] + len(facts["errors"])
    if done.returncode and not failures:
        raise SystemExit(f"schemathesis ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return Round(counted(url) - before, failures, time.monotonic() - started_s, done.stdout)


def rounds(url: str, requests: int, seed: int) -> Iterable[Round]:
    """Rounds until so many requests were answered, or one failed."""
    sent = 0
    while sent < requests:
        done = tried(url, seed)
        sent, seed = sent + done.requests, seed + 1
        yield done
        if done.failures:
            return


def main() -> int:
    """Run, print one line a round and a sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--model", default="", help="folder of a real model, in place of the dummies")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    try:
        SCHEMATHESIS.ensure()
    except CannotInstallError as error:
        print(f"cannot install: {error}", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is ended, too
    models = ("--model-id", arguments.model) if arguments.model else (*DUMMIES, *TASKS)
    sent = failures = 0
    started_s = time.monotonic()
    with serve(*models, "--operator-key", KEY, "--public-routes", "") as server:
        server.wait_until_ready()
        while_loading = counted(server.url, status="5")
        for number, done in enumerate(rounds(server.url, arguments.requests, arguments.seed)):
            sent, failures = sent + done.requests, failures + done.failures
            seed = arguments.seed + number
            print(f"seed {seed}: {done.requests} requests in {done.took_s:.0f} s, {done.failures} failures", flush=True)
            if done.failures:
                print(done.output)
        broken = counted(server.url, status="5") - while_loading
        print(f"{sent} requests in {time.monotonic() - started_s:.0f} s, {failures} failures, {broken} answers of 5xx")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
