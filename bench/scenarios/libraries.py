"""Parts 2 and 3: libraries in process, in calls of 32 in arrival order, as a server sees its texts.

llama.cpp is not among them: it reads the model from a GGUF file, which none of these packages writes.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import environments
import numpy as np
from environments import NotAvailableError
from library import Contender, Library
from measure import Spread, alternate, number, ratios
from report import Line

if TYPE_CHECKING:
    from collections.abc import Callable

    from context import Context
    from report import Report

_CALL = 32
_FASTEST_BARS = {"float32": 1.5, "bfloat16": 2.0}
_ENCODE_BARS = {"float32": 1.4, "defaults": 2.2}
_REFERENCE = "sentence-transformers torch float32"


def run(context: Context, report: Report) -> None:
    """Start all, measure in turn, compare within a precision."""
    running: dict[str, Library] = {}
    try:
        for contender in _contenders(context, report):
            library = _started(contender, report)
            if library is not None:
                running[contender.name] = library
        _measure(context, report, running)
    finally:
        for library in running.values():
            library.stop()


def _started(contender: Contender, report: Report) -> Library | None:
    try:
        return Library(contender)
    except RuntimeError as error:
        report.miss(contender.name, error)
        return None


def _contenders(context: Context, report: Report) -> list[Contender]:
    found = [Contender("ours float32", "ours_adapter", context.model, "float32", options={"dtype": "float32"})]
    if context.bfloat16:
        found.append(
            Contender("ours bfloat16", "ours_adapter", context.model, "bfloat16", options={"dtype": "bfloat16"})
        )
    try:
        converted = context.converted()
    except (NotAvailableError, subprocess.CalledProcessError) as error:
        report.miss("sentence-transformers, fastembed, CTranslate2", error)
        return found
    return found + _torch_environment(context, report, converted) + _fastembed(context, report, converted)


def _torch_environment(context: Context, report: Report, converted: dict[str, str]) -> list[Contender]:
    python = environments.TORCH.command("python")
    adapter = "sentence_transformers_adapter"
    found = [Contender(_REFERENCE, adapter, context.model, "float32", python)]
    openvino = {"backend": "openvino", "dtype": "float32"}
    found.append(
        Contender("sentence-transformers OpenVINO float32", adapter, context.model, "float32", python, openvino)
    )
    if "onnx" in converted:
        name = "sentence-transformers ONNX float32"
        found.append(Contender(name, adapter, converted["onnx"], "float32", python, {"backend": "onnx"}))
    else:
        report.miss("ONNX Runtime peers", "the model could not be exported to ONNX")
    if "ctranslate2" in converted:
        found.append(
            Contender("CTranslate2 float32", "ctranslate2_adapter", converted["ctranslate2"], "float32", python)
        )
    else:
        report.miss("CTranslate2", "the model could not be converted")
    if context.bfloat16:
        for backend in ("torch", "openvino"):
            options = {"backend": backend, "dtype": "bfloat16"}
            name = f"sentence-transformers {backend} bfloat16"
            found.append(Contender(name, adapter, context.model, "bfloat16", python, options))
    return found


def _fastembed(context: Context, report: Report, converted: dict[str, str]) -> list[Contender]:
    try:
        environments.provide(environments.FASTEMBED, install=context.install)
    except NotAvailableError as error:
        report.miss("fastembed", error)
        return []
    if "onnx" not in converted:
        return []
    python = environments.FASTEMBED.command("python")
    return [Contender("fastembed float32", "fastembed_adapter", converted["onnx"], "float32", python)]


def _measure(context: Context, report: Report, running: dict[str, Library]) -> None:
    documents = context.texts.documents[: context.count(256)]
    calls: dict[str, Callable[[], float]] = {
        name: lambda library=library: library.texts_per_s(documents, _CALL) for name, library in running.items()
    }
    rates = alternate(context.rounds, calls)
    rows = []
    reference = running[_REFERENCE].vectors(documents[:64]) if _REFERENCE in running else None
    for name, library in running.items():
        nearness = "" if reference is None else f"{_least_cosine(reference, library.vectors(documents[:64])):.5f}"
        first, peak = number(library.first_vector_s), number(library.peak_bytes / 1e6)
        rows.append((name, str(Spread.of(rates[name])), first, peak, nearness))
    columns = (
        "library",
        "documents/s in calls of 32",
        "first vector after s",
        "peak MB",
        "least cosine to the reference",
    )
    report.table("Libraries in process", columns, rows)
    for precision, bar in _FASTEST_BARS.items():
        _against_fastest(
            report, precision, bar, {n: r for n, r in rates.items() if running[n].contender.precision == precision}
        )
    if _REFERENCE in rates:
        value = ratios(rates["ours float32"], rates[_REFERENCE])
        what = f"documents in calls of 32, in process: ours float32 / {_REFERENCE}"
        report.line(Line("2", what, value, _ENCODE_BARS["float32"]))


def _against_fastest(report: Report, precision: str, bar: float, rates: dict[str, list[float]]) -> None:
    ours = rates.pop(f"ours {precision}", None)
    if ours is None or not rates:
        return
    fastest = max(rates, key=lambda name: sum(rates[name]))
    what = f"documents in calls of 32, {precision}: ours / fastest peer ({fastest})"
    report.line(Line("3", what, ratios(ours, rates[fastest]), bar))


def _least_cosine(reference: np.ndarray, vectors: np.ndarray) -> float:
    lengths = np.linalg.norm(reference, axis=1) * np.linalg.norm(vectors, axis=1)
    return float(((reference * vectors).sum(axis=1) / lengths).min())
