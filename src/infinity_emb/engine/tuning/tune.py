"""Measures every candidate in a process of its own and chooses one."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.engine.tuning.candidate import BUDGETS_TOKENS, candidates, shapes
from infinity_emb.engine.tuning.measure import Measured, measure
from infinity_emb.errors import InfinityError, LoadError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.tuning.candidate import Candidate

    Try: TypeAlias = Callable[[EngineArgs, float], Measured]

# Among ways that are so nearly as fast as the fastest the one that answers a single text soonest is taken.
NEARLY = 0.97


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate and what became of it.

    Attributes:
        candidate: The way that was tried.
        measured: Its figures; None if it failed.
        failure: Why it cannot be used; empty if it can.
    """

    candidate: Candidate
    measured: Measured | None
    failure: str = ""


def tune(
    args: EngineArgs, duration_s: float, on_trial: Callable[[Trial, int], None], try_one: Try | None = None
) -> tuple[Trial, list[Trial]]:
    """Engines and number formats first, then batch sizes of the best of them.

    Args:
        args: The model; what its engine, number format or batch size already is stays.
        duration_s: How long each candidate is measured.
        on_trial: Called with each result and how many are still to come.
        try_one: Measures; None does it in a new process each time, so that nobody's memory or threads are another's.

    Returns:
        The best trial, and all of them in order.

    Raises:
        LoadError: No candidate can be used.
    """
    try_one = try_one or _in_process
    trials: list[Trial] = []

    def run(group: Sequence[Candidate], later: int) -> None:
        for number, candidate in enumerate(group, 1):
            trial = _trial(candidate, args, duration_s, try_one)
            trials.append(trial)
            on_trial(trial, len(group) - number + later)

    run(candidates(args), len(BUDGETS_TOKENS) if args.max_batch_tokens is None else 0)
    run(shapes(best_of(trials).candidate), 0)
    return best_of(trials), trials


def best_of(trials: Sequence[Trial]) -> Trial:
    """The fastest; of those nearly as fast the one with the shortest latency.

    Raises:
        LoadError: None can be used; the message holds the reasons.
    """
    usable = [(trial, trial.measured) for trial in trials if trial.measured is not None and not trial.failure]
    if not usable:
        reasons = "; ".join(f"{trial.candidate.engine} {trial.candidate.dtype}: {trial.failure}" for trial in trials)
        raise LoadError(f"No engine here can serve this model: {reasons}")
    fastest = max(measured.items_per_s for _, measured in usable)
    near = [(measured.latency_ms, trial) for trial, measured in usable if measured.items_per_s >= NEARLY * fastest]
    return min(near, key=lambda pair: pair[0])[1]


def _trial(candidate: Candidate, args: EngineArgs, duration_s: float, try_one: Try) -> Trial:
    try:
        measured = try_one(candidate.applied(args), duration_s)
    except InfinityError as error:
        return Trial(candidate, None, str(error))
    if measured.dtype != str(candidate.dtype):
        return Trial(candidate, measured, f"its results are not right; {measured.dtype} would be served")
    return Trial(candidate, measured)


def _in_process(args: EngineArgs, duration_s: float) -> Measured:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(measure, args, duration_s).result()
        except BrokenProcessPool as error:
            raise LoadError("its process ended without a word; it may have run out of memory.") from error
