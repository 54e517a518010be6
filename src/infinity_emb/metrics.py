"""Counters of one server, in Prometheus form; the four `http_*` families keep the names that Infinity's dashboards use.

On the hot path: recording adds to plain numbers, and families are built from them when someone scrapes. All of it
happens in the thread of the event loop, so there are no locks.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)

from infinity_emb.measures import STAGES, Histogram, operation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prometheus_client.metrics_core import Metric

COARSE_S = (0.1, 0.5, 1.0)
FINE_S = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip

# The bounds that OpenTelemetry's conventions advise.
SERVER_S = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
OPERATION_S = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKENS = tuple(4**power for power in range(14))

STAGE_S = (0.0001, 0.00025, 0.0005, *FINE_S)

_COARSE = frozenset((*map(str, COARSE_S), "+Inf"))  # as Prometheus names them; each is one of `SERVER_S` too

ModelGauges = tuple[str, dict[str, float]]
"""Served name of a model, and its gauges by name (see `GAUGES`)."""

ModelMeasures = tuple[str, "Mapping[str, Histogram]", "Mapping[str, int]"]
"""Served name of a model, histograms of its batches by the keys of `BATCHES`, and inputs by how the cache answered."""

BATCHES = {
    "tokens": "Real tokens of a batch.",
    "fill_ratio": "Share of a batch's slots that held real tokens; the rest was padding.",
}
GAUGES = {
    "infinity_queue_items": "Items waiting for the model.",
    "infinity_queue_fraction": "Share of the waiting line in use; 1 means that requests are refused.",
    "infinity_queue_tokens": "Tokens waiting for the model.",
    "infinity_queue_oldest_seconds": "How long the oldest request has waited.",
    "infinity_running_items": "Items being computed.",
    "infinity_tokens_per_second": "Measured speed of the model.",
    "infinity_batch_busy_seconds": "How long the batch being computed has been computing.",
    "infinity_worker_restarts": "How often a worker that died or hung was replaced since the start.",
    "infinity_model_up": "1 if the model can answer, 0 if not.",
}
_FIGURES = {
    "fidelity_min_cosine": "Smallest cosine of the self-check's vectors with the float32 reference.",
    "fidelity_max_abs_error": "Largest error of a number in the self-check.",
    "fidelity_top10_agreement": "Share of the ten nearest in the self-check that are the reference's.",
}
GAUGES |= {f"infinity_{name}": text for name, text in _FIGURES.items()}
GAUGES |= {
    f"infinity_{kind}_{name}": f"As infinity_{name}, of {kind}." for kind in ("image", "audio") for name in _FIGURES
}
FIDELITY = tuple(name.removeprefix("infinity_") for name in GAUGES if name.endswith(tuple(_FIGURES)))
"""Facts of a model's card that are gauges too."""


class _Requests:
    """Requests of one handler, method and status."""

    __slots__ = ("buckets", "bytes_in", "bytes_out", "count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.seconds = 0.0
        self.buckets = [0] * (len(SERVER_S) + 1)

    def add(self, other: _Requests) -> None:
        """Sum up two of them."""
        self.count += other.count
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.seconds += other.seconds
        self.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]


class _Work:
    """What one model did for one task."""

    __slots__ = ("items", "tokens", "truncated", "usage")

    def __init__(self) -> None:
        self.usage = Histogram(TOKENS)
        self.items = 0
        self.tokens = 0
        self.truncated = 0


class HttpMetrics:
    """What is counted about requests; one object a server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._requests: dict[tuple[str, str, int], _Requests] = {}
        self._fine_buckets = [0] * (len(FINE_S) + 1)
        self._fine_seconds = 0.0
        self._work: dict[tuple[str, str], _Work] = {}
        self._operations: dict[tuple[str, str, int], Histogram] = {}
        self._refused: dict[str, int] = {}
        self._abandoned = 0
        self._stages: dict[str, tuple[Histogram, ...]] = {}
        self._read_gauges: Callable[[], Iterable[ModelGauges]] = tuple
        self._read_measures: Callable[[], Iterable[ModelMeasures]] = tuple
        self._registry.register(self)

    def record(self, handler: str, method: str, status: int, sizes_bytes: tuple[int, int], duration_s: float) -> None:
        """Count one answered request; `sizes_bytes` is body in, body out."""
        key = (handler, method, status)
        cell = self._requests.get(key)
        if cell is None:
            cell = self._requests[key] = _Requests()
        cell.count += 1
        cell.bytes_in += sizes_bytes[0]
        cell.bytes_out += sizes_bytes[1]
        cell.seconds += duration_s
        cell.buckets[bisect_left(SERVER_S, duration_s)] += 1
        self._fine_buckets[bisect_left(FINE_S, duration_s)] += 1
        self._fine_seconds += duration_s

    def record_work(self, model: str, task: str, *, items: int, tokens: int, truncated: int) -> None:
        """Count what one request cost its model."""
        cell = self._work.get((model, task))
        if cell is None:
            cell = self._work[model, task] = _Work()
        cell.items += items
        cell.tokens += tokens
        cell.truncated += truncated
        if tokens:
            cell.usage.observe(tokens)

    def record_operation(self, model: str, operation: str, status: int, duration_s: float) -> None:
        """Count one answered request that asked a model for something."""
        key = (model, operation, status)
        histogram = self._operations.get(key)
        if histogram is None:
            histogram = self._operations[key] = Histogram(OPERATION_S)
        histogram.observe(duration_s)

    def record_stages(self, model: str, seconds: Sequence[float]) -> None:
        """Count where the time of one answered request went; `seconds` is in the order of `STAGES`."""
        stages = self._stages.get(model)
        if stages is None:
            stages = self._stages[model] = tuple(Histogram(STAGE_S) for _ in STAGES)
        for histogram, value in zip(stages, seconds, strict=True):
            histogram.counts[bisect_left(STAGE_S, value)] += 1
            histogram.total += value

    def record_refusal(self, code: str) -> None:
        """Count a request that was answered with an error of this code (codes come from one table, so they are few)."""
        self._refused[code] = self._refused.get(code, 0) + 1

    def record_abandoned(self) -> None:
        """Count a request whose client left before the answer."""
        self._abandoned += 1

    def watch_models(
        self, gauges: Callable[[], Iterable[ModelGauges]], measures: Callable[[], Iterable[ModelMeasures]] = tuple
    ) -> None:
        """Show what these return at each scrape."""
        self._read_gauges, self._read_measures = gauges, measures

    def exposition(self) -> bytes:
        """Everything, as Prometheus text."""
        return generate_latest(self._registry)

    def describe(self) -> Iterator[Metric]:
        """Nothing: the registry asks for names only to find duplicates."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Families as they stand now."""
        yield from self._request_families()
        yield from self._work_families()
        yield from self._operation_families()
        refused = CounterMetricFamily("infinity_refused_requests", "Requests refused, by error code.", labels=["code"])
        for code, count in self._refused.items():
            refused.add_metric([code], count)
        yield refused
        yield CounterMetricFamily("infinity_abandoned_requests", "Requests whose client left.", value=self._abandoned)
        yield from self._stage_families()
        yield from self._measure_families()
        yield from self._gauge_families()

    def _request_families(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("http_requests", "Requests answered.", labels=["handler", "method", "status"])
        for (handler, method, status), cell in self._summed(lambda key: (key[0], key[1], f"{key[2] // 100}xx")):
            requests.add_metric([handler, method, status], cell.count)
        yield requests
        size_in = SummaryMetricFamily("http_request_size_bytes", "Body bytes in.", labels=["handler"])
        size_out = SummaryMetricFamily("http_response_size_bytes", "Body bytes out.", labels=["handler"])
        for labels, cell in self._summed(lambda key: (key[0],)):
            size_in.add_metric(labels, cell.count, cell.bytes_in)
            size_out.add_metric(labels, cell.count, cell.bytes_out)
        yield size_in
        yield size_out
        text = "Time from the request line to the last byte of the answer."
        duration = HistogramMetricFamily("http_request_duration_seconds", text, labels=["handler", "method"])
        for labels, cell in self._summed(lambda key: (key[0], key[1])):
            buckets = [pair for pair in _cumulative(SERVER_S, cell.buckets) if pair[0] in _COARSE]
            duration.add_metric(labels, buckets, cell.seconds)
        yield duration
        names = ["handler", "method", "status"]
        server = HistogramMetricFamily("http_server_request_duration_seconds", f"{text[:-1]}, by status.", labels=names)
        for (handler, method, exact), cell in self._requests.items():
            server.add_metric([handler, method, str(exact)], _cumulative(SERVER_S, cell.buckets), cell.seconds)
        yield server
        fine = HistogramMetricFamily("http_request_duration_highr_seconds", "The same over all handlers, finer.")
        fine.add_metric([], _cumulative(FINE_S, self._fine_buckets), self._fine_seconds)
        yield fine

    def _summed(
        self, labels_of: Callable[[tuple[str, str, int]], tuple[str, ...]]
    ) -> Iterator[tuple[tuple[str, ...], _Requests]]:
        sums: dict[tuple[str, ...], _Requests] = {}
        for key, cell in self._requests.items():
            sums.setdefault(labels_of(key), _Requests()).add(cell)
        return iter(sums.items())

    def _work_families(self) -> Iterator[Metric]:
        labels = ["model", "task"]
        items = CounterMetricFamily("infinity_items", "Texts, pairs or media items answered.", labels=labels)
        tokens = CounterMetricFamily("infinity_tokens", "Tokens the model saw.", labels=labels)
        truncated = CounterMetricFamily("infinity_truncated_items", "Items that were cut.", labels=labels)
        for key, cell in self._work.items():
            items.add_metric(key, cell.items)
            tokens.add_metric(key, cell.tokens)
            truncated.add_metric(key, cell.truncated)
        return iter((items, tokens, truncated))

    def _operation_families(self) -> Iterator[Metric]:
        text = "Time of a request that asked a model for something."
        labels = ["model", "operation", "status"]
        duration = HistogramMetricFamily("gen_ai_server_request_duration_seconds", text, labels=labels)
        for (model, operation, status), histogram in self._operations.items():
            buckets = _cumulative(histogram.bounds, histogram.counts)
            duration.add_metric([model, operation, str(status)], buckets, histogram.total)
        yield duration
        usage = HistogramMetricFamily("gen_ai_client_token_usage", "Tokens of an answered request.", labels=labels[:2])
        sums: dict[tuple[str, str], Histogram] = {}
        for (model, task), cell in self._work.items():
            sums.setdefault((model, operation_of(task)), Histogram(TOKENS)).add(cell.usage)
        for key, histogram in sums.items():
            usage.add_metric(key, _cumulative(TOKENS, histogram.counts), histogram.total)
        yield usage

    def _stage_families(self) -> Iterator[Metric]:
        text = "Time of a request by stage: reading the inputs, the waiting line, the model, writing the answer."
        family = HistogramMetricFamily("infinity_stage_seconds", text, labels=["model", "stage"])
        for model, histograms in self._stages.items():
            for stage, histogram in zip(STAGES, histograms, strict=True):
                family.add_metric([model, stage], _cumulative(histogram.bounds, histogram.counts), histogram.total)
        yield family

    def _measure_families(self) -> Iterator[Metric]:
        families = {
            key: HistogramMetricFamily(f"infinity_batch_{key}", text, labels=["model"]) for key, text in BATCHES.items()
        }
        labels = ["model", "how"]
        cache = CounterMetricFamily("infinity_cache_items", "Inputs by how the cache answered.", labels=labels)
        for model, histograms, answered in self._read_measures():
            for key, histogram in histograms.items():
                families[key].add_metric([model], _cumulative(histogram.bounds, histogram.counts), histogram.total)
            for how, count in answered.items():
                cache.add_metric([model, how], count)
        return iter((*families.values(), cache))

    def _gauge_families(self) -> Iterator[Metric]:
        families = {name: GaugeMetricFamily(name, text, labels=["model"]) for name, text in GAUGES.items()}
        for model, values in self._read_gauges():
            for name, value in values.items():
                families[name].add_metric([model], value)
        return iter(families.values())


def _cumulative(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """Prometheus' buckets: how many are at most that large."""
    names = [*(str(bound) for bound in bounds), "+Inf"]
    return list(zip(names, map(float, accumulate(counts)), strict=True))
