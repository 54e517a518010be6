"""Makes the backend of a started engine misbehave on request."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infinity_emb import AsyncEmbeddingEngine

WAIT_S = 20.0  # how long a test waits for something that must happen
POISON = "boom"


class Death(BaseException):
    """Something that no `except Exception` catches."""


@contextmanager
def replaced_start(engine: AsyncEmbeddingEngine, start) -> Iterator[None]:
    """`start(original, arrays)` stands for the backend's own while the block runs."""
    backend = engine._model.backends[0]
    original = backend.start
    backend.start = lambda arrays: start(original, arrays)
    try:
        yield
    finally:
        backend.start = original


@contextmanager
def poisoned(engine: AsyncEmbeddingEngine, error: BaseException, *, late: bool = False) -> Iterator[None]:
    """A dummy engine raises for every batch that holds the poison: when it starts, or when its result is taken."""

    def start(original, arrays):
        if POISON.encode() not in arrays["input_ids"].astype("uint8").tobytes():
            return original(arrays)
        if late:
            return _Broken(error)
        raise error

    with replaced_start(engine, start):
        yield


class _Broken:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def result(self):
        raise self._error


class Gate:
    """Keeps an engine from computing until it is opened, and notes how many tokens wide each batch is."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, ...]] = []
        self._opened = threading.Event()
        self.open = self._opened.set

    def __call__(self, original, arrays):
        self.batches.append(arrays["input_ids"].shape)
        assert self._opened.wait(WAIT_S)
        return original(arrays)


@contextmanager
def gated(engine: AsyncEmbeddingEngine) -> Iterator[Gate]:
    """The gate is open again when the block ends."""
    gate = Gate()
    with replaced_start(engine, gate):
        try:
            yield gate
        finally:
            gate.open()
