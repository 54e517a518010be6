"""Parts 1 and 2: queries and documents over HTTP, next to the original at 0.0.78 with its torch engine."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from environments import NotAvailableError
from load import COLUMNS, Work, bodies, load, row
from measure import alternate, ratios
from report import Line
from servers import Server, serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from context import Context
    from report import Report

_DOCUMENTS_PER_REQUEST = 32


@dataclass(frozen=True)
class _Case:
    """One load, the bar by precision, and how long it takes to measure."""

    part: str
    what: str
    work: Work
    bars: dict[str, float]
    seconds: float
    by_latency: bool = False


def run(context: Context, report: Report) -> None:
    """Measure both servers in turn."""
    with contextlib.ExitStack() as stack:
        start: Callable[[str, list[str]], Server] = lambda name, command: stack.enter_context(serving(name, command))  # noqa: E731
        servers = {name: start(f"ours {name}", context.ours(*flags)) for name, flags in context.precisions().items()}
        try:
            servers["infinity"] = start("infinity 0.0.78 torch", context.infinity("--engine", "torch"))
        except (NotAvailableError, RuntimeError) as error:
            report.miss("parts 1 and 2 against infinity 0.0.78", error)
        for case in _cases(context):
            _compare(context, report, case, servers)


def _cases(context: Context) -> list[_Case]:
    queries, documents = bodies(context.texts.queries, 1), bodies(context.texts.documents, _DOCUMENTS_PER_REQUEST)
    return [
        _Case("1", "one query a request, 32 connections", Work(queries, 32), {"defaults": 4, "float32": 2.3}, 5),
        _Case("1", "one query a request, 1 connection", Work(queries, 1), {"defaults": 5, "float32": 5}, 4, True),
        _Case(
            "2",
            f"32 documents a request, {context.connections} connections",
            Work(documents, context.connections),
            {"defaults": 3, "float32": 1.8},
            16,
        ),
    ]


def _compare(context: Context, report: Report, case: _Case, servers: dict[str, Server]) -> None:
    duration_s = context.seconds(case.seconds)
    results = alternate(
        context.rounds,
        {name: lambda server=server: load(server, case.work, duration_s) for name, server in servers.items()},
    )
    report.table(
        f"Part {case.part}: {case.what}",
        COLUMNS,
        [row(servers[name].name, outcomes) for name, outcomes in results.items()],
    )
    theirs = results.pop("infinity", None)
    if theirs is None:
        return
    for name, ours in results.items():
        if case.by_latency:
            value = ratios([one.latencies_ms["p50"] for one in theirs], [one.latencies_ms["p50"] for one in ours])
        else:
            value = ratios([one.requests_per_s for one in ours], [one.requests_per_s for one in theirs])
        figure = "p50, infinity 0.0.78 / ours" if case.by_latency else "requests/s, ours / infinity 0.0.78"
        report.line(Line(case.part, f"{case.what}, {name}: {figure}", value, case.bars[name]))
