"""What fuzzing has found: inputs that broke a target, and inputs that found a new way through the code."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

CORPUS = Path(__file__).parent / "corpus"
# A few hundred of the shortest say nearly as much as thousands, and the tests run every one of them.
KEPT_INPUTS = 300
KEPT_BYTES = 1000


def kept(target: str) -> list[bytes]:
    """Inputs that once broke it."""
    return [path.read_bytes() for path in sorted((CORPUS / target).glob("*"))]


def keep(target: str, data: bytes) -> Path:
    """Keep an input that broke it."""
    path = CORPUS / target / hashlib.sha256(data).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def interesting(target: str) -> list[bytes]:
    """Inputs that found something new."""
    path = CORPUS / f"{target}.txt"
    return [base64.b64decode(line) for line in path.read_text("ascii").split()] if path.is_file() else []


def keep_interesting(target: str, inputs: Iterable[bytes]) -> None:
    """Keep the shortest of them in place of those that were kept before, from which they were made."""
    chosen = sorted((data for data in set(inputs) if 0 < len(data) <= KEPT_BYTES), key=lambda data: (len(data), data))
    lines = [base64.b64encode(data).decode() for data in chosen[:KEPT_INPUTS]]
    if lines:
        (CORPUS / f"{target}.txt").write_text("".join(f"{line}\n" for line in lines), "ascii")
