"""Writes the results of a whole run into docs/clients.md, between two marks."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from matrix import NOT_YET, ROWS
from roster import CLIENTS

if TYPE_CHECKING:
    from report import Outcome

PAGE = Path(__file__).resolve().parents[2] / "docs" / "clients.md"
START, END = "<!-- results: written by tests/clients/run.py --document -->", "<!-- end of results -->"


def write(outcome: Outcome) -> None:
    """Replace what stands between the marks."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{START}\n\n{text(outcome)}\n{END}{after}", "utf-8")


def text(outcome: Outcome) -> str:
    """The two tables, in Markdown."""
    python = ".".join(map(str, sys.version_info[:2]))
    today = dt.datetime.now(tz=dt.timezone.utc).date().isoformat()
    lines = [f"Run on {today} with Python {python}.", "", "| Client | Versions | Checks passed |", "|---|---|---|"]
    for client in CLIENTS:
        own = [line for line in outcome.lines if line.client == client.name]
        passed = sum(not line.failed for line in own)
        named = ", ".join(f"{name} {version}" for name, version in client.versions().items())
        lines.append(f"| {client.name} | {named} | {passed} of {len(own)} |")
    lines += ["", "| Row | Need | What | Result | Proved by |", "|---|---|---|---|---|"]
    for row in ROWS:
        proofs = ", ".join(dict.fromkeys(line.client for line in outcome.proofs(row.name)))
        note = NOT_YET.get(row.name, proofs)
        lines.append(f"| {row.name} | {row.need} | {row.what} | {outcome.verdict(row.name)} | {note} |")
    return "\n".join(lines) + "\n"
