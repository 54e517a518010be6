"""Part 7: time from process start to ready with warm caches, and memory idle and under load."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from environments import NotAvailableError
from load import Work, bodies, load
from measure import Spread
from report import Line
from servers import serving

if TYPE_CHECKING:
    from context import Context
    from report import Report
    from servers import Server

_MB = 1e6
_SAMPLE_S = 0.1


def run(context: Context, report: Report) -> None:
    """Ours as often as there are rounds, the slower peer less often; each once before, to warm the caches.

    No bar needs the peer here, and its starts alone would take a quick run a third of its time.
    """
    ours = _measure(context, "ours", context.ours(), context.rounds)
    report.line(Line("7", "start of the process to ready, warm caches", ours["ready"], 1.0, at_most=True, unit="s"))
    report.line(Line("7", "resident memory, idle", ours["idle"], 350, at_most=True, unit="MB"))
    report.line(Line("7", "resident memory under load (most)", ours["loaded"], 500, at_most=True, unit="MB"))
    rows = [("ours", *map(str, ours.values()))]
    try:
        name = "infinity 0.0.78 torch"
        if context.quick:
            report.miss("part 7 of infinity 0.0.78", "only a full run waits for its starts")
        else:
            theirs = _measure(context, name, context.infinity("--engine", "torch"), max(1, context.rounds - 1))
            rows.append((name, *map(str, theirs.values())))
    except (NotAvailableError, RuntimeError) as error:
        report.miss("part 7 of infinity 0.0.78", error)
    report.table("Part 7: start and memory", ("server", "ready s", "idle MB", "under load MB"), rows)


def _measure(context: Context, name: str, command: list[str], rounds: int) -> dict[str, Spread]:
    ready_s, idle, loaded = [], [], []
    work = Work(bodies(context.texts.documents, 32), context.connections)
    for turn in range(rounds + 1):
        with serving(name, command) as server:
            if turn == 0:
                continue
            ready_s.append(server.ready_s)
            time.sleep(0.5)
            idle.append(server.resident_bytes() / _MB)
            if turn == 1:
                loaded.append(_most_under_load(server, work, context.seconds(8)))
    return {"ready": Spread.of(ready_s), "idle": Spread.of(idle), "loaded": Spread.of(loaded)}


def _most_under_load(server: Server, work: Work, duration_s: float) -> float:
    """Largest of the samples taken while documents are being embedded."""
    most = 0.0
    done = threading.Event()

    def watch() -> None:
        nonlocal most
        while not done.wait(_SAMPLE_S):
            most = max(most, server.resident_bytes() / _MB)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        load(server, work, duration_s)
    finally:
        done.set()
        watcher.join()
    return most
