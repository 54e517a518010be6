"""Part 6: throughput and waiting at 8, 64 and 512 connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from load import Work, bodies, load
from measure import Spread, alternate
from report import Line
from servers import serving

if TYPE_CHECKING:
    from context import Context
    from report import Report

_CONNECTIONS = (8, 64, 512)


def run(context: Context, report: Report) -> None:
    """All three in turn on one server."""
    queries = bodies(context.texts.queries, 1)
    duration_s = context.seconds(6)
    with serving("ours", context.ours()) as server:
        results = alternate(
            context.rounds,
            {str(n): lambda n=n: load(server, Work(queries, n), duration_s) for n in _CONNECTIONS},
        )
    rates = {name: [one.requests_per_s for one in outcomes] for name, outcomes in results.items()}
    waits = {name: [one.latencies_ms["p50"] for one in outcomes] for name, outcomes in results.items()}
    worst = Spread.of([min(turn) / max(turn) for turn in zip(*rates.values(), strict=True)])
    report.line(Line("6", "queries at 8, 64, 512 connections: slowest / fastest", worst, 0.9))
    few, many = str(_CONNECTIONS[0]), str(_CONNECTIONS[-1])
    growth = [
        (wait_many / wait_few) / (_CONNECTIONS[-1] / _CONNECTIONS[0])
        for wait_few, wait_many in zip(waits[few], waits[many], strict=True)
    ]
    what = "p50 at 512 / p50 at 8 connections, over 64 (the growth of the queue)"
    report.line(Line("6", what, Spread.of(growth), 1.1, at_most=True))
    rows = [(name, str(Spread.of(rates[name])), str(Spread.of(waits[name]))) for name in results]
    report.table("Part 6: one query a request", ("connections", "requests/s", "p50 ms"), rows)
