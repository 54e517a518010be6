"""Notes how far a backend is from the reference, for the table in docs/models.md; does nothing unless it is asked to."""

from __future__ import annotations

import json
import os
from pathlib import Path

JOINT = "pictures and texts"  # kind of the rows that tests/parity/test_joint.py measures
SOUNDS = "sounds and texts"  # and tests/parity/test_sounds.py
REFERENCE = "reference"  # column of the reference's own distance from float64
# Names the file that takes the notes, one JSON object a line; several test processes may write to it.
VARIABLE = "INFINITY_TEST_MEASURED"


def note(kind: str, row: str, engine: str, error: float) -> None:
    """Keep the largest absolute error of one row of the parity suite on one backend."""
    path = os.environ.get(VARIABLE)
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": kind, "row": row, "engine": engine, "error": float(error)}) + "\n")


def read(path: str) -> dict[tuple[str, str, str], float]:
    """(kind, row, engine) → the largest error noted."""
    found: dict[tuple[str, str, str], float] = {}
    for line in Path(path).read_text("utf-8").splitlines():
        noted = json.loads(line)
        name = noted["kind"], noted["row"], noted["engine"]
        found[name] = max(found.get(name, 0.0), noted["error"])
    return found
