"""Runs one client's script, reads its check lines, and holds them against the conformance matrix."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from checks import MARK
from environments import QUIET
from matrix import NOT_YET, ROWS

if TYPE_CHECKING:
    from roster import Client

FOLDER = Path(__file__).resolve().parent
SCRIPT_TIMEOUT_S = 300


@dataclass(frozen=True)
class Line:
    """One check of one client."""

    client: str
    rows: tuple[str, ...]
    what: str
    why: str
    contradiction: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.why) and not self.contradiction

    def __str__(self) -> str:
        rows = " ".join(self.rows)
        if self.failed:
            return f"FAIL {self.client}: {rows}: {self.what}\n     {self.why}"
        if self.why:
            return f"known {self.client}: {rows}: {self.what} ({self.contradiction})"
        return f"ok   {self.client}: {rows}: {self.what}"


@dataclass
class Outcome:
    """All lines so far, and which clients ran."""

    lines: list[Line] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)

    def failures(self, row: str) -> list[Line]:
        return [line for line in self.lines if row in line.rows and line.failed]

    def proofs(self, row: str) -> list[Line]:
        return [line for line in self.lines if row in line.rows and not line.why]

    def verdict(self, row: str) -> str:
        """How a row of the matrix stands: ok, FAIL, not yet, or unproven."""
        if self.failures(row):
            return "FAIL"
        if row in NOT_YET:
            return "not yet"
        return "ok" if self.proofs(row) else "unproven"


def run_client(client: Client, urls: dict[str, str]) -> list[Line]:
    """Run the script; a crash, a hang or no check at all is a failed check of its own."""
    environment = os.environ | QUIET | urls
    environment |= {
        "PYTHONPATH": str(FOLDER),
        "PYTHONUTF8": "1",
        "PYTHONWARNINGS": "ignore",
        "CLIENTS_SERVER_PATH": os.pathsep.join(sys.path),
    }
    command = client.environment.command(FOLDER / client.script)
    crash = ""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SCRIPT_TIMEOUT_S, check=False
        )
        output = done.stdout
        if done.returncode != 0:
            crash = f"exit code {done.returncode}: {done.stderr[-1500:]}"
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        crash = f"still running after {SCRIPT_TIMEOUT_S} s"
    found = [json.loads(line.removeprefix(MARK)) for line in output.splitlines() if line.startswith(MARK)]
    lines = [Line(client.name, tuple(one.pop("rows")), **one) for one in found]
    if not lines and not crash:
        crash = "the script checked nothing"
    if crash:
        lines.append(Line(client.name, client.rows, "the script runs to its end", crash))
    return lines


def matrix_lines(outcome: Outcome, *, whole: bool) -> tuple[list[str], bool]:
    """One printed line a row, and whether every M and S row stands; parts of the clients cannot prove all rows."""
    printed, good = [], True
    for row in ROWS:
        verdict = outcome.verdict(row.name)
        if verdict == "unproven" and not whole:
            continue
        clients = ", ".join(dict.fromkeys(line.client for line in outcome.proofs(row.name)))
        note = NOT_YET.get(row.name, clients)
        printed.append(f"{verdict:9}{row.name:4}{row.need}  {row.what} [{note}]")
        good = good and (verdict in ("ok", "not yet") or row.need == "O")
    return printed, good
