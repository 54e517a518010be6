"""What the model that is being brought up is doing, for whoever asks the server meanwhile.

Models of one server are brought up one after another, in a thread of their own; downloads report from further threads.
"""

from __future__ import annotations

import threading
from typing import NamedTuple


class Step(NamedTuple):
    """Where a model is on its way.

    Attributes:
        model: Served name.
        name: `fetching` its files, or `loading` them.
        fetched_bytes: Of what has to be fetched; 0 if nothing has to.
        total_bytes: As far as it is known.
    """

    model: str
    name: str
    fetched_bytes: int = 0
    total_bytes: int = 0


class Progress:
    """The present step; None while nothing is brought up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._step: Step | None = None

    @property
    def step(self) -> Step | None:
        """As it stands now."""
        return self._step

    def begin(self, model: str) -> None:
        """The next model is looked for."""
        self._step = Step(model, "fetching")

    def load(self) -> None:
        """Its files are there."""
        with self._lock:
            if self._step is not None:
                self._step = self._step._replace(name="loading")

    def fetched(self, done_bytes: int, total_bytes: int) -> None:
        """So much of its files is there; of several counts of the same files the furthest one holds."""
        with self._lock:
            step = self._step
            if step is not None and done_bytes >= step.fetched_bytes:
                self._step = step._replace(fetched_bytes=done_bytes, total_bytes=max(total_bytes, step.total_bytes))

    def end(self) -> None:
        """It runs, or never will."""
        self._step = None


PROGRESS = Progress()
