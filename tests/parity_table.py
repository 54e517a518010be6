"""Runs the tests that compare with the references and writes what it measured into docs/models.md (`make parity`)."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import measured
from parity_rows import CLOSED_MODULES, COLUMNS, MODULES, declared

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/models.md"
BEGIN, END = "<!-- measured: written by make parity -->\n", "<!-- end of measured -->"
NONE = "–"  # noqa: RUF001 - a dash for what is not compared


def known(page: str) -> dict[tuple[str, str, str], float]:
    """(kind, row, engine) → error, as the page has it."""
    lines = [line for line in page.partition(BEGIN)[2].partition(END)[0].splitlines() if line]
    header, _, *rows = [line.strip("|").strip().split(" | ") for line in lines]
    return {
        (row[0], row[1], column): float(cell)
        for row in rows
        for column, cell in zip(header[3:], row[3:], strict=True)
        if cell != NONE
    }


def table(errors: dict[tuple[str, str, str], float]) -> str:
    """The table in Markdown; raises `KeyError` for a row that was never measured."""
    lines = [f"| What | Row | Architecture | {' | '.join(COLUMNS)} |", "|---" * (3 + len(COLUMNS)) + "|"]
    for row in declared():
        measures = [errors[row.kind, row.name, one] if one in row.engines else None for one in COLUMNS]
        cells = [NONE if one is None else f"{one:.0e}" if one else "0" for one in measures]
        lines.append(f"| {row.kind} | {row.name} | {row.architecture} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure and write; the exit status of pytest, and nothing is written if a test fails.

    Rows that the arguments leave out (`-k`) stay as they are.
    """
    with tempfile.TemporaryDirectory() as folder:
        notes = str(Path(folder) / "notes")
        files = [str(ROOT / f"tests/parity/test_{name}.py") for name in (*MODULES, *CLOSED_MODULES)]
        command = [sys.executable, "-m", "pytest", *files, *sys.argv[1:]]
        status = subprocess.run(command, env={**os.environ, measured.VARIABLE: notes}, check=False).returncode
        if status:
            return status
        text = PAGE.read_text("utf-8")
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        errors = known(text) | measured.read(notes)
        PAGE.write_text(f"{before}{BEGIN}\n{table(errors)}\n{END}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
