"""Part 4: what a single query sees while bulk saturates the server, and what the bulk pays for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from load import Outcome, Running, Work, bodies, load
from measure import Spread, alternate
from report import Line
from servers import serving

if TYPE_CHECKING:
    from context import Context
    from report import Report
    from servers import Server

_BULK_CONNECTIONS = 8
_BULK_INPUTS = 256
_QUERIES_PER_S = 5.0


def run(context: Context, report: Report) -> None:
    """Bulk alone and bulk with queries, in turn."""
    bulk = Work(bodies(context.texts.documents, _BULK_INPUTS), _BULK_CONNECTIONS)
    queries = Work(bodies(context.texts.queries, 1), rate=_QUERIES_PER_S)
    duration_s = context.seconds(12)
    with serving("ours", context.ours()) as server:
        results = alternate(
            context.rounds,
            {
                "alone": lambda: (load(server, bulk, duration_s), None),
                "mixed": lambda: _together(server, bulk, queries, duration_s),
            },
        )
    waits = [interactive for _, interactive in results["mixed"] if interactive is not None]
    p99 = Spread.of([one.latencies_ms["p99"] for one in waits])
    note = f"of {sum(one.answered for one in waits)} queries"
    what = "single query at 5/s while 8 connections send 256 documents a request: p99"
    report.line(Line("4", what, p99, 200, at_most=True, unit="ms", note=note))
    alone = [bulk_outcome.requests_per_s for bulk_outcome, _ in results["alone"]]
    mixed = [bulk_outcome.requests_per_s for bulk_outcome, _ in results["mixed"]]
    lost = Spread.of([100 * (1 - one / other) for one, other in zip(mixed, alone, strict=True)])
    report.line(Line("4", "bulk throughput lost to those queries", lost, 8, at_most=True, unit="%"))
    p50 = Spread.of([one.latencies_ms["p50"] for one in waits])
    rows = [
        ("bulk alone", str(Spread.of([rate * _BULK_INPUTS for rate in alone])), "", ""),
        ("bulk and queries", str(Spread.of([rate * _BULK_INPUTS for rate in mixed])), str(p50), str(p99)),
    ]
    report.table("Part 4: bulk and interactive", ("load", "documents/s", "query p50 ms", "query p99 ms"), rows)


def _together(server: Server, bulk: Work, queries: Work, duration_s: float) -> tuple[Outcome, Outcome | None]:
    heavy = Running(server, bulk, duration_s, 1.0)
    light = Running(server, queries, duration_s, 1.0)
    return heavy.result(), light.result()
