"""Part 5: what the server itself costs, without a model, next to the original's debugengine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from environments import NotAvailableError
from load import COLUMNS, Work, bodies, load, row
from measure import Spread, alternate, ratios
from report import Line
from servers import serving

if TYPE_CHECKING:
    from context import Context
    from report import Report
    from servers import Server

_P50_BAR_MS = 1.0


@dataclass(frozen=True)
class _Case:
    """One load; theirs differs only in what it asks for (their JSON is what base64 is compared with)."""

    what: str
    ours: Work
    theirs: Work
    bar: float | None


def run(context: Context, report: Report) -> None:
    """Measure both in turn."""
    with contextlib.ExitStack() as stack:
        ours = stack.enter_context(
            serving("ours, dummy, 384 numbers", context.ours("--engine", "dummy", model="dummy"))
        )
        infinity: Server | None = None
        try:
            command = context.infinity("--engine", "debugengine")
            infinity = stack.enter_context(serving("infinity 0.0.78 debugengine, 13 numbers", command))
        except (NotAvailableError, RuntimeError) as error:
            report.miss("part 5 against infinity 0.0.78", error)
        for case in _cases(context):
            _compare(context, report, case, (ours, infinity))


def _cases(context: Context) -> list[_Case]:
    single = bodies(context.texts.queries, 1)
    many = bodies(context.texts.queries, 32)
    packed = bodies(context.texts.queries, 32, encoding_format="base64")
    return [
        _Case("one input, 1 connection", Work(single, 1), Work(single, 1), None),
        _Case("one input, 32 connections", Work(single, 32), Work(single, 32), 5),
        _Case("32 inputs, 32 connections, JSON", Work(many, 32), Work(many, 32), 6),
        _Case("32 inputs, 32 connections, base64 (theirs JSON)", Work(packed, 32), Work(many, 32), 12),
    ]


def _compare(context: Context, report: Report, case: _Case, servers: tuple[Server, Server | None]) -> None:
    ours, infinity = servers
    duration_s = context.seconds(4)
    measured = {"ours": lambda: load(ours, case.ours, duration_s, 0.5)}
    if infinity is not None:
        measured["infinity"] = lambda: load(infinity, case.theirs, duration_s, 0.5)
    results = alternate(context.rounds, measured)
    rows = [
        row(server.name, results[name]) for name, server in zip(results, servers, strict=False) if server is not None
    ]
    report.table(f"Part 5: {case.what}", COLUMNS, rows)
    if case.bar is None:
        p50 = Spread.of([one.latencies_ms["p50"] for one in results["ours"]])
        report.line(Line("5", f"dummy, {case.what}: p50", p50, _P50_BAR_MS, at_most=True, unit="ms"))
    elif infinity is not None:
        speeds = [[one.requests_per_s for one in results[name]] for name in ("ours", "infinity")]
        what = f"dummy, {case.what}: requests/s, ours / infinity 0.0.78"
        report.line(Line("5", what, ratios(*speeds), case.bar))
