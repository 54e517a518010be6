"""Takes the first way to compute a model whose results are right, and says so when it is not the first one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.engine.fidelity.check import Attempt
from infinity_emb.errors import ConfigurationError, LoadError
from infinity_emb.types import Dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infinity_emb.backends.base import Backend, BackendOptions
    from infinity_emb.engine.fidelity.check import SelfCheck
    from infinity_emb.engine.fidelity.figures import Figures

_log = logging.getLogger("infinity_emb")


class Chosen(NamedTuple):
    """How a model is computed.

    Attributes:
        backends: Loaded, one a replica.
        attempt: How.
        figures: Result of the self-check; None if there was none.
    """

    backends: tuple[Backend, ...]
    attempt: Attempt
    figures: Figures | None


def attempts_of(options: BackendOptions, backend_type: type[Backend], *, checked: bool) -> list[Attempt]:
    """Ways to compute a model, best first.

    `auto` begins with the formats that the machine computes faster than float32, if results are checked; a format or
    file that was asked for comes first. Float32 from the checkpoint's own weights is always the last resort.
    """
    onnx_file = options.extra.get("onnx_file")
    first = [Attempt(options.dtype, onnx_file)]
    if options.dtype is Dtype.AUTO and checked and onnx_file is None:
        fast = backend_type.fast_dtypes(options)
        first = [*(Attempt(dtype, None, optional=True) for dtype in fast), *first]
    last = Attempt(Dtype.FLOAT32, None, optional=True)
    return first if first[-1] == Attempt(Dtype.FLOAT32, None) else [*first, last]


def choose(
    attempts: Sequence[Attempt],
    load: Callable[[Attempt], tuple[Backend, ...]],
    check: SelfCheck | None,
    bar: float,
) -> Chosen:
    """Load attempts until one passes.

    Args:
        attempts: Best first.
        load: Loads the backends of one.
        check: Compares; None takes the first attempt as it is.
        bar: Smallest cosine that passes.

    Raises:
        LoadError: None passes; the message holds the figures of the last one.
        ConfigurationError: What was asked for is not offered.
    """
    if check is None:
        return Chosen(load(attempts[0]), attempts[0], None)
    search = _Search(check, bar)
    for attempt in attempts:
        if search.has_failed(attempt):
            continue
        backends = _try(load, attempt, check)
        if backends is None:
            continue
        try:
            chosen = search.judge(attempt, backends)
        except BaseException:
            _close(backends)
            raise
        if chosen is not None:
            return chosen
        _close(backends)
    raise search.refusal()


class _Search:
    """What the attempts so far have shown; only failed ones are kept."""

    def __init__(self, check: SelfCheck, bar: float) -> None:
        self._check = check
        self._bar = bar
        self._failed: dict[tuple[str, str | None], Figures] = {}
        self._broken: LoadError | None = None

    def has_failed(self, attempt: Attempt) -> bool:
        """Whether it need not be loaded: it failed at an earlier start, or as `auto` before."""
        name = str(attempt.dtype), attempt.onnx_file
        if name in self._failed:
            return True
        known = self._check.early(attempt)
        if known is None or known.passes(self._bar):
            return False
        self._note(name, known)
        return True

    def judge(self, attempt: Attempt, backends: tuple[Backend, ...]) -> Chosen | None:
        """The attempt as the choice, or None if it fails."""
        name = str(backends[0].report.dtype), attempt.onnx_file
        try:
            figures = self._check.figures(attempt, backends[0])
        except LoadError as error:
            _log.warning("%s in %s fails the self-check: %s", self._check.model_id, name[0], error)
            self._broken = error
            return None
        if figures is None:
            return Chosen(backends, attempt, None)
        if not figures.passes(self._bar):
            self._note(name, figures)
            return None
        another = self._failed or self._broken is not None
        _log.log(
            logging.WARNING if another else logging.INFO,
            "%s is computed in %s%s; self-check: %s",
            self._check.model_id,
            name[0],
            " instead" if another else "",
            figures,
        )
        return Chosen(backends, attempt, figures)

    def refusal(self) -> LoadError:
        """Why nothing is served."""
        if not self._failed:
            return self._broken or LoadError(f"{self._check.model_id}: no number format is offered here.")
        (dtype, _), figures = list(self._failed.items())[-1]
        return LoadError(
            f"{self._check.model_id} gives wrong results here: in {dtype} against {figures.reference}: {figures}, "
            f"relative error {figures.max_relative_error:.2e}, over {figures.probes} inputs; --fidelity asks for a min "
            f"cosine of {self._bar}. Nothing is served, because such vectors would look right. Try another --engine, "
            "and please report it; --fidelity 0 serves all the same.",
            param="fidelity",
        )

    def _note(self, name: tuple[str, str | None], figures: Figures) -> None:
        self._failed[name] = figures
        text = "%s in %s fails the self-check: %s; --fidelity asks for a min cosine of %s"
        _log.warning(text, self._check.model_id, name[0], figures, self._bar)


def _try(
    load: Callable[[Attempt], tuple[Backend, ...]], attempt: Attempt, check: SelfCheck
) -> tuple[Backend, ...] | None:
    """Load an attempt; None if nobody asked for it and this machine, library or checkpoint does not offer it."""
    try:
        return load(attempt)
    except (ConfigurationError, LoadError) as error:
        if not attempt.optional:
            raise
        _log.info("%s is not computed in %s: %s", check.model_id, attempt.dtype, error)
        return None


def _close(backends: tuple[Backend, ...]) -> None:
    for backend in backends:
        backend.close()
