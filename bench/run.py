"""Measure this project next to its peers on this machine: `python bench/run.py [--quick]`.

The figures, tables and plots go to `bench/results/`; `python bench/publish.py` puts them into docs/performance.md.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"


def main() -> int:
    """Run the scenarios that were asked for; 0 even if a bar was not reached, which the report says."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the servers are stopped on the way out
    import facts
    import machine
    import scenarios
    from context import Context
    from report import Report

    import texts
    from infinity_emb.config.environment import environ
    from infinity_emb.models.hub import HubSettings, resolve

    checkpoint = resolve(arguments.model, settings=HubSettings.from_environment(environ()))
    quick = arguments.quick
    context = Context(
        model=str(checkpoint.path),
        texts=texts.sample(),
        rounds=arguments.rounds or (2 if quick else 3),
        scale=0.2 if quick else 1.0,
        install=not quick,
        bfloat16=machine.has_bfloat16(),
    )
    report = Report(facts=facts.facts(context))
    for name, value in report.facts.items():
        print(f"{name}: {value}")
    started_s = time.monotonic()
    for name in arguments.only or (scenarios.QUICK if quick else scenarios.ALL):
        print(f"{name} ({time.monotonic() - started_s:.0f} s)", flush=True)
        try:
            scenarios.ALL[name](context, report)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            report.miss(f"the rest of {name}", error)
    report.facts["took"] = f"{time.monotonic() - started_s:.0f} s"
    folder = _write(report)
    below = [line for line in report.lines if line.verdict == "below"]
    print(f"{len(report.lines) - len(below)} of {len(report.lines)} bars reached; report in {folder}")
    return 0


def _arguments() -> argparse.Namespace:
    import scenarios

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="half the scenarios, a fifth of the durations, no installation"
    )
    parser.add_argument("--only", nargs="+", choices=list(scenarios.ALL), help="run these scenarios only")
    parser.add_argument("--rounds", type=int, help="repetitions of each measurement")
    parser.add_argument("--model", default="sentence-transformers/all-MiniLM-L6-v2", help="repository id or folder")
    return parser.parse_args()


def _write(report: object) -> Path:
    from plot import Bar, bars
    from report import markdown

    folder = RESULTS / time.strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    (folder / "report.json").write_text(json.dumps(report.as_json(), indent=1))
    (folder / "report.md").write_text(markdown(report))
    lines = [line for line in report.lines if line.unit == "x" and not line.at_most]
    if lines:
        rows = [Bar(f"{line.part}. {line.what}", line.value, line.bar) for line in lines]
        (folder / "ratios.svg").write_text(bars("Ratios, red is the bar", "x", rows))
    return folder


if __name__ == "__main__":
    sys.exit(main())
