"""The machine, the versions and the texts behind a run."""

from __future__ import annotations

import os
import platform
import statistics
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import environments
from environments import NotAvailableError

if TYPE_CHECKING:
    from context import Context
    from environments import Environment

_OURS = ("infinity_emb", "openvino", "onnxruntime", "numpy", "tokenizers", "uvicorn", "uvloop")


def facts(context: Context) -> dict[str, str]:
    """What a reader needs to judge the figures."""
    found = {
        "processor": f"{_processor()}, {_cores()} cores usable; {_capabilities()}",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "other load before the run": _busy(),
        "ours": ", ".join(f"{name} {_version(name)}" for name in _OURS),
        "documents": _lengths(context, context.texts.documents),
        "queries": _lengths(context, context.texts.queries),
        "rounds": f"{context.rounds}, in turn (A B, B A, …); durations times {context.scale:g}",
    }
    for environment in (environments.INFINITY, environments.TORCH, environments.FASTEMBED):
        found[f"peer environment {environment.name}"] = _peer(context, environment)
    return found


def _peer(context: Context, environment: Environment) -> str:
    try:
        return context.versions(environment)
    except NotAvailableError as error:
        return str(error)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _capabilities() -> str:
    import openvino

    return "OpenVINO sees " + ", ".join(openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES"))


def _busy() -> str:
    if not hasattr(os, "getloadavg"):
        return "unknown"
    load = os.getloadavg()[0]
    quiet = load < 0.5
    return f"load average {load:.1f}" + (
        "" if quiet else ": other programs were running, do not trust absolute figures"
    )


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _lengths(context: Context, texts: list[str]) -> str:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(context.model) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    counts = sorted(len(encoding.ids) for encoding in tokenizer.encode_batch(texts))
    return (
        f"{len(counts)} of {statistics.mean(counts):.0f} tokens on average "
        f"(quarter {counts[len(counts) // 4]}, median {counts[len(counts) // 2]}, "
        f"95 % {counts[int(len(counts) * 0.95)]}, longest {counts[-1]})"
    )
