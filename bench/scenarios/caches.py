"""Part 8: the same query again, one at a time and from many at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from load import Work, bodies, load
from measure import Spread, alternate
from report import Line
from servers import serving

if TYPE_CHECKING:
    from context import Context
    from report import Report


def run(context: Context, report: Report) -> None:
    """One repeated query against ever new ones."""
    queries = bodies(context.texts.queries, 1)
    repeated = queries[:1]
    duration_s = context.seconds(4)
    with serving("ours", context.ours()) as server:
        results = alternate(
            context.rounds,
            {
                "the same, 1 connection": lambda: load(server, Work(repeated, 1), duration_s),
                "new ones, 1 connection": lambda: load(server, Work(queries, 1), duration_s),
                "the same, 32 connections": lambda: load(server, Work(repeated, 32), duration_s),
                "new ones, 32 connections": lambda: load(server, Work(queries, 32), duration_s),
            },
        )
    p50 = Spread.of([one.latencies_ms["p50"] for one in results["the same, 1 connection"]])
    report.line(Line("8", "a query that was asked before: p50", p50, 0.5, at_most=True, unit="ms"))
    rows = []
    for name, outcomes in results.items():
        rates = Spread.of([one.requests_per_s for one in outcomes])
        waits = Spread.of([one.latencies_ms["p50"] for one in outcomes])
        rows.append((name, str(rates), str(waits)))
    report.table("Part 8: repeated queries", ("queries", "requests/s", "p50 ms"), rows)
