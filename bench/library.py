"""A library in a process of its own, driven through `adapters/worker.py`."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_WORKER = Path(__file__).with_name("adapters") / "worker.py"


@dataclass(frozen=True)
class Contender:
    """Which library, and how.

    Attributes:
        name: For tables.
        adapter: Module in `adapters/`.
        folder: The model, in the form that the library reads.
        precision: `float32`, `bfloat16` or `int8`: only like is compared with like.
        python: Interpreter of its environment.
        options: For the adapter.
    """

    name: str
    adapter: str
    folder: str
    precision: str
    python: str = sys.executable
    options: dict[str, Any] = field(default_factory=dict)


class Library:
    """A running contender.

    Attributes:
        first_vector_s: From start of the process to the first vector.
        peak_bytes: Largest resident memory so far.
    """

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.peak_bytes = 0
        command = [contender.python, str(_WORKER), contender.adapter, contender.folder, json.dumps(contender.options)]
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process; a pipe could fill up
        started_s = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True
        )
        try:
            self._read()
        except RuntimeError:
            self.stop()
            raise
        self.first_vector_s = time.perf_counter() - started_s

    def texts_per_s(self, texts: Sequence[str], call: int) -> float:
        """Speed with so many texts a call."""
        return len(texts) / self._ask(texts, call)["seconds"]

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors `[texts, dim]`."""
        answer = self._ask(texts, 32, vectors=True)
        return np.frombuffer(base64.b64decode(answer["vectors"]), np.float32).reshape(len(texts), answer["dim"])

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, texts: Sequence[str], call: int, *, vectors: bool = False) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"texts": list(texts), "call": call, "vectors": vectors}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        self.peak_bytes = answer["peak_bytes"]
        return answer

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._said.seek(0)
            said = self._said.read().strip().splitlines()
            raise RuntimeError(f"{self.contender.name} ended: {(said or ['it said nothing'])[-1][:300]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
