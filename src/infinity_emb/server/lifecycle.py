"""Whether the server can answer: loading, ready, failed or draining, and which engines it has."""

from __future__ import annotations

import enum
import time
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import (
    CheckpointError,
    ConfigurationError,
    HubError,
    MissingExtraError,
    ModelNotFoundError,
    NotReadyError,
    StorageError,
)
from infinity_emb.progress import PROGRESS
from infinity_emb.server.access import check_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from infinity_emb.engine.array import AsyncEngineArray
    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.types import Task

UNSPECIFIED_MODEL = "default/not-specified"
_REASONS = {
    StorageError: "The disk is full or cannot be written",
    CheckpointError: "The model's files are broken, incomplete or not supported",
    HubError: "The model's files cannot be fetched",
    MissingExtraError: "A library that the model needs is not installed",
    ConfigurationError: "An option is wrong",
}
LOADING_RETRY_S = 2
BROKEN_RETRY_S = 60


class Phase(str, enum.Enum):
    """Where the server is in its life."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    DRAINING = "draining"


class Lifecycle:
    """The one place that knows the phase; shared by all ports of a server.

    Attributes:
        names: Served names, known before anything is loaded.
        phase: The present phase.
        array: The engines, once they are loaded.
        engines: The same as a tuple; empty before.
        broken: Served names of the models that could not be loaded.
        failure: What kind of error ended the loading, for a stranger.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.phase = Phase.LOADING
        self.array: AsyncEngineArray | None = None
        self.engines: tuple[AsyncEmbeddingEngine, ...] = ()
        self.broken: frozenset[str] = frozenset()
        self.failure = ""
        self._begun_s = time.monotonic()
        self._took_s: float | None = None

    def open(self, array: AsyncEngineArray, broken: Iterable[str] = ()) -> None:
        """The engines run: answer requests, except for models that are broken."""
        self.array = array
        self.engines = tuple(array)
        self.broken = frozenset(broken)
        self.phase = Phase.READY
        self._took_s = time.monotonic() - self._begun_s

    def fail(self, error: BaseException) -> None:
        """Loading failed for good. The message of the error may hold paths and is for the log, not for strangers."""
        self.failure = _reason(error)
        self.phase = Phase.FAILED

    def drain(self) -> None:
        """Take nothing new; what was accepted is still answered."""
        self.phase = Phase.DRAINING

    def progress(self) -> dict[str, Any]:
        """How far start-up is, for `/startupz`."""
        elapsed_s = time.monotonic() - self._begun_s if self._took_s is None else self._took_s
        answer: dict[str, Any] = {
            "status": self.phase.value,
            "elapsed_s": round(elapsed_s, 3),
            "models": [{"id": name, "status": self._status_of(name), **_step_of(name)} for name in self.names],
        }
        if self.failure:
            answer["error"] = self.failure
        return answer

    def _status_of(self, name: str) -> str:
        if self.array is None:
            return self.phase.value
        if name in self.broken:
            return "failed"
        return (
            "ready" if any(engine.card.served_name == name and engine.is_healthy for engine in self.array) else "down"
        )


def _step_of(name: str) -> dict[str, str | int]:
    """What a model that is being brought up is doing; nothing for the others."""
    step = PROGRESS.step
    if step is None or step.model != name:
        return {}
    fetched = {"fetched_bytes": step.fetched_bytes, "total_bytes": step.total_bytes} if step.total_bytes else {}
    return {"step": step.name, **fetched}


def _reason(error: BaseException) -> str:
    reasons = (text for kind, text in _REASONS.items() if isinstance(error, kind))
    return f"{next(reasons, 'The model cannot be loaded')}; the server's log has the details."


class Models:
    """The engines that one port answers for.

    Args:
        lifecycle: Phase and engines of the whole server.
        only: Served name of the one model of this port; None is all of them.
    """

    def __init__(self, lifecycle: Lifecycle, only: str | None = None) -> None:
        self._lifecycle = lifecycle
        self._only = only

    @property
    def lifecycle(self) -> Lifecycle:
        """Phase and engines of the whole server."""
        return self._lifecycle

    def __iter__(self) -> Iterator[AsyncEmbeddingEngine]:
        for engine in self._lifecycle.engines:
            if self._only is None or engine.card.served_name == self._only:
                yield engine

    def can_answer(self) -> bool:
        """Ready, and every model of this port is up; a port without models cannot answer."""
        return self._lifecycle.phase is Phase.READY and bool(list(self)) and not self.unable()

    def unable(self) -> list[str]:
        """Served names of this port's models that cannot answer although loading is over."""
        down = [engine.card.served_name for engine in self if not engine.is_healthy]
        return sorted([*down, *self._broken()])

    def _broken(self) -> set[str]:
        return {name for name in self._lifecycle.broken if self._only in {None, name}}

    def check_open(self) -> None:
        """Raise unless requests are taken.

        Raises:
            NotReadyError: Loading, failed or draining.
        """
        phase = self._lifecycle.phase
        if phase is Phase.READY:
            return
        text = {
            Phase.LOADING: "The models are still loading; see /startupz for the progress.",
            Phase.DRAINING: "The server is shutting down and takes no new requests.",
            Phase.FAILED: "The models could not be loaded; the server's log says why.",
        }[phase]
        raise NotReadyError(text, retry_after_s=LOADING_RETRY_S)

    def find(self, name: str | None, *tasks: Task) -> AsyncEmbeddingEngine:
        """The engine for a request.

        Args:
            name: Served name; None, empty or Infinity's `default/not-specified` is the first model made for the task.
                With one model every name is that model's.
            tasks: What it is asked to do; earlier ones are preferred.

        Raises:
            NotReadyError: Loading, failed or draining.
            ModelNotFoundError: Several models are served and none under this name.
            ForbiddenError: The key of the request is not for this model.
        """
        engine = self._find(name, tasks)
        check_model(engine.card.served_name)
        return engine

    def _find(self, name: str | None, tasks: tuple[Task, ...]) -> AsyncEmbeddingEngine:
        lifecycle = self._lifecycle
        if lifecycle.phase is not Phase.READY:
            self.check_open()
        if len(lifecycle.engines) == 1 and not lifecycle.broken and self._only is None:
            return lifecycle.engines[0]
        engines = list(self)
        broken = self._broken()
        if name in broken or not engines:
            raise NotReadyError(
                f"The model {(name or self._only or '')[:200]!r} could not be loaded; the server's log says why.",
                retry_after_s=BROKEN_RETRY_S,
            )
        if len(engines) == 1 and not broken:
            return engines[0]
        if not name or name == UNSPECIFIED_MODEL:
            fitting = (engine for task in tasks for engine in engines if task in engine.card.tasks)
            return next(fitting, engines[0])
        for engine in engines:
            if engine.card.served_name == name:
                return engine
        known = ", ".join(repr(engine.card.served_name) for engine in engines)
        raise ModelNotFoundError(f"No model is served as {name[:200]!r}; the served models are {known}.", param="model")
