"""Counters of one server, in Prometheus form; the four `http_*` families keep the names that Infinity's dashboards use.

On the hot path: `HttpMetrics.record` only touches counters whose labels were resolved before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    Summary,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client.metrics_core import Metric

_FINE_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60)

ModelGauges = tuple[str, dict[str, float]]
"""Served name of a model, and its gauges by name (see `GAUGES`)."""

GAUGES = {
    "infinity_queue_items": "Items waiting for the model.",
    "infinity_queue_fraction": "Share of the waiting line in use; 1 means that requests are refused.",
    "infinity_queue_tokens": "Tokens waiting for the model.",
    "infinity_queue_oldest_seconds": "How long the oldest request has waited.",
    "infinity_running_items": "Items being computed.",
    "infinity_tokens_per_second": "Measured speed of the model.",
    "infinity_model_up": "1 if the model can answer, 0 if not.",
}


class HttpMetrics:
    """What is counted about requests; one object a server.

    Attributes:
        registry: Everything that `/metrics` shows.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        by_handler = ("handler",)
        self._requests = self._counter("http_requests_total", "Requests answered.", ("handler", "method", "status"))
        self._request_size = Summary("http_request_size_bytes", "Body bytes in.", by_handler, registry=self.registry)
        self._response_size = Summary("http_response_size_bytes", "Body bytes out.", by_handler, registry=self.registry)
        self._duration = Histogram(
            "http_request_duration_seconds",
            "Time from the request line to the last byte of the answer.",
            ("handler", "method"),
            buckets=(0.1, 0.5, 1),
            registry=self.registry,
        )
        self._duration_fine = Histogram(
            "http_request_duration_highr_seconds",
            "The same over all handlers, in fine steps.",
            buckets=_FINE_BUCKETS_S,
            registry=self.registry,
        )
        self._tokens = self._counter("infinity_tokens_total", "Tokens the model saw.", ("model", "task"))
        self._items = self._counter("infinity_items_total", "Texts, pairs or media items answered.", ("model", "task"))
        self._truncated = self._counter("infinity_truncated_items_total", "Items that were cut.", ("model", "task"))
        self._refused = self._counter("infinity_refused_requests_total", "Requests refused, by error code.", ("code",))
        self._abandoned = self._counter("infinity_abandoned_requests_total", "Requests whose client left.", ())
        self._resolved: dict[tuple[str, str, int], _Resolved] = {}
        self._resolved_models: dict[tuple[str, str], tuple[Counter, Counter, Counter]] = {}

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def record(self, handler: str, method: str, status: int, sizes_bytes: tuple[int, int], duration_s: float) -> None:
        """Count one answered request; `sizes_bytes` is body in, body out."""
        key = (handler, method, status)
        resolved = self._resolved.get(key)
        if resolved is None:
            resolved = self._resolved[key] = _Resolved(
                self._requests.labels(handler, method, f"{status // 100}xx"),
                self._request_size.labels(handler),
                self._response_size.labels(handler),
                self._duration.labels(handler, method),
            )
        resolved.requests.inc()
        resolved.request_size.observe(sizes_bytes[0])
        resolved.response_size.observe(sizes_bytes[1])
        resolved.duration.observe(duration_s)
        self._duration_fine.observe(duration_s)

    def record_work(self, model: str, task: str, *, items: int, tokens: int, truncated: int) -> None:
        """Count what one request cost its model."""
        counters = self._resolved_models.get((model, task))
        if counters is None:
            counters = self._resolved_models[model, task] = (
                self._items.labels(model, task),
                self._tokens.labels(model, task),
                self._truncated.labels(model, task),
            )
        counters[0].inc(items)
        counters[1].inc(tokens)
        if truncated:
            counters[2].inc(truncated)

    def record_refusal(self, code: str) -> None:
        """Count a request that was answered with an error of this code (codes come from one table, so they are few)."""
        self._refused.labels(code).inc()

    def record_abandoned(self) -> None:
        """Count a request whose client left before the answer."""
        self._abandoned.inc()

    def watch_models(self, read: Callable[[], Iterable[ModelGauges]]) -> None:
        """Show the gauges that `read` returns at each scrape."""
        self.registry.register(_ModelCollector(read))

    def exposition(self) -> bytes:
        """Everything, as Prometheus text."""
        return generate_latest(self.registry)


class _Resolved:
    """Children of the four families for one handler, method and status."""

    __slots__ = ("duration", "request_size", "requests", "response_size")

    def __init__(self, requests: Counter, request_size: Summary, response_size: Summary, duration: Histogram) -> None:
        self.requests = requests
        self.request_size = request_size
        self.response_size = response_size
        self.duration = duration


class _ModelCollector:
    """Reads the models' gauges when someone scrapes, so that idle servers pay nothing."""

    def __init__(self, read: Callable[[], Iterable[ModelGauges]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """One family a gauge, one sample a model."""
        families = {name: GaugeMetricFamily(name, text, labels=["model"]) for name, text in GAUGES.items()}
        for model, values in self._read():
            for name, value in values.items():
                families[name].add_metric([model], value)
        return iter(families.values())
