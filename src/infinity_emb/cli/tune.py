"""`infinity_emb tune`: measure how each model is best computed here, and keep the answer for `v2`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from infinity_emb.config.environment import environ
from infinity_emb.config.log import configure_logging
from infinity_emb.config.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.config.sources import Given
    from infinity_emb.engine.tuning.tune import Trial

DURATION_S = 6.0
_COLUMNS = ("engine", "dtype", "batch tokens", "texts/s", "one text, ms", "memory, MB", "min cosine", "")


def tune(flags: Mapping[str, Given], duration_s: float = DURATION_S) -> int:
    """Measure, print and keep; returns the exit code.

    Args:
        flags: What the command line says, as for `v2`.
        duration_s: How long each candidate is measured.

    Raises:
        InfinityError: Settings are wrong, or a model cannot be computed in any way.
    """
    resolved = resolve(flags, environ())
    configure_logging(resolved.server_args.log_level, resolved.server_args.log_format)
    for args in resolved.engine_args:
        _tune(args, duration_s)
    return 0


def _tune(args: EngineArgs, duration_s: float) -> None:
    from tqdm import tqdm  # noqa: PLC0415 - the command's help needs none of these

    from infinity_emb.engine.tuning.kept import keep  # noqa: PLC0415 - as above
    from infinity_emb.engine.tuning.tune import tune as measure_all  # noqa: PLC0415 - as above

    with tqdm(desc=f"Measuring {args.model_name_or_path}", unit=" candidates") as progress:

        def show(trial: Trial, left: int) -> None:
            progress.total = progress.n + 1 + left
            progress.set_postfix_str(f"{trial.candidate.engine} {trial.candidate.dtype}", refresh=False)
            progress.update()

        best, trials = measure_all(args, duration_s, show)
    click.echo(table(trials, best))
    if best.measured is not None:
        path = keep(args, best.candidate, best.measured)
        click.echo(f"Kept in {path}; `infinity_emb v2` uses it unless --engine, --dtype or --no-tuned says otherwise.")


def table(trials: Sequence[Trial], best: Trial) -> str:
    """Every candidate with its figures, the chosen one marked."""
    rows = [_COLUMNS, *(_row(trial, chosen=trial is best) for trial in trials)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def _row(trial: Trial, *, chosen: bool) -> tuple[str, ...]:
    candidate, measured = trial.candidate, trial.measured
    tokens = "default" if candidate.max_batch_tokens is None else str(candidate.max_batch_tokens)
    figures = ("-", "-", "-", "-")
    if measured is not None:
        cosine = "-" if measured.min_cosine is None else f"{measured.min_cosine:.6f}"
        figures = (f"{measured.items_per_s:.1f}", f"{measured.latency_ms:.2f}", f"{measured.memory_mb:.0f}", cosine)
    return (str(candidate.engine), str(candidate.dtype), tokens, *figures, "chosen" if chosen else trial.failure)
