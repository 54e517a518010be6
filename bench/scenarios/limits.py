"""Part 3: how near HTTP comes to the engine in process, and the engine to the machine's own rate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from load import Work, bodies, load
from machine import LinearLayers, PackedForward, linear_flop_per_token
from measure import Spread, alternate, number, ratios
from report import Line
from servers import serving

if TYPE_CHECKING:
    from collections.abc import Callable

    from context import Context
    from report import Report

_FORWARD_BARS = {"float32": 0.80, "bfloat16": 0.70}
_HTTP_BAR = 0.92
_INPUTS = 32


def run(context: Context, report: Report) -> None:
    """Machine's rate against the packed forward, then HTTP against the engine in process."""
    for dtype in ("float32", "bfloat16"):
        if dtype == "bfloat16" and not context.bfloat16:
            report.miss("part 3 in bfloat16", "this CPU does not compute in bfloat16")
            continue
        _forward(context, report, dtype)
    _http(context, report)


def _forward(context: Context, report: Report, dtype: str) -> None:
    layers = LinearLayers(context.model, dtype)
    forwards = {
        "documents": PackedForward(context.model, dtype, context.texts.documents[:128]),
        "queries": PackedForward(context.model, dtype, context.texts.queries[:256]),
    }
    duration_s = context.seconds(4)
    measured: dict[str, Callable[[], float]] = {"machine": lambda: layers.gflop_per_s(duration_s)}
    for name, forward in forwards.items():
        measured[name] = lambda forward=forward: forward.gflop_per_s(duration_s)
    rates = alternate(context.rounds, measured)
    flop = linear_flop_per_token(context.model)
    rows = [
        (
            "linear layers alone",
            str(Spread.of(rates["machine"])),
            str(Spread.of([rate * 1e9 / flop for rate in rates["machine"]])),
            "",
        )
    ]
    for name, forward in forwards.items():
        tokens_per_s = Spread.of([rate * 1e9 / flop for rate in rates[name]])
        filled = number(100 * forward.tokens / forward.slots) + " %"
        rows.append((f"packed forward, {name}", str(Spread.of(rates[name])), str(tokens_per_s), filled))
        what = f"packed forward of {name}, {dtype}: share of the machine's rate"
        report.line(Line("3", what, ratios(rates[name], rates["machine"]), _FORWARD_BARS[dtype]))
        forward.close()
    report.table(f"Part 3: rates in {dtype}", ("work", "GFLOP/s", "tokens/s", "slots filled"), rows)


def _http(context: Context, report: Report) -> None:
    duration_s = context.seconds(8)
    documents = bodies(context.texts.documents, _INPUTS)
    with serving("ours", context.ours()) as server:
        rates = alternate(
            context.rounds,
            {
                "http": lambda: load(server, Work(documents, context.connections), duration_s).requests_per_s,
                "process": lambda: _in_process(context, duration_s),
            },
        )
    value = ratios(rates["http"], rates["process"])
    report.line(
        Line("3", f"32 documents a request, {context.connections} at once: over HTTP / in process", value, _HTTP_BAR)
    )
    rows = [(name, str(Spread.of([rate * _INPUTS for rate in values]))) for name, values in rates.items()]
    report.table("Part 3: over HTTP and in process", ("way", "documents/s"), rows)


def _in_process(context: Context, duration_s: float) -> float:
    """Requests per second of the engine driven in a process of its own, without HTTP."""
    texts = context.texts.documents
    groups = [texts[start : start + _INPUTS] for start in range(0, len(texts) - _INPUTS + 1, _INPUTS)]
    job = {
        "model": context.model,
        "groups": groups,
        "at_once": context.connections,
        "duration_s": duration_s,
        "warm_s": 1.0,
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve().parent.parent / "in_process.py")],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        check=True,
    )
    rate: float = json.loads(done.stdout)["requests_per_s"]
    return rate
