"""From the families of `/metrics` to OpenTelemetry's data model: the same numbers, under the conventions' names."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from infinity_emb.server.telemetry import SERVICE, needed
from infinity_emb.server.version import package_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from prometheus_client.metrics_core import Metric
    from prometheus_client.samples import Sample

# Families whose meaning the conventions know; all others keep their names.
_NAMES = {
    "http_server_request_duration_seconds": "http.server.request.duration",
    "gen_ai_server_request_duration_seconds": "gen_ai.server.request.duration",
    "gen_ai_client_token_usage": "gen_ai.client.token.usage",
}
_UNITS = {"_seconds": "s", "_bytes": "By", "_tokens": "{token}", "_tokens_total": "{token}", "_token_usage": "{token}"}
_NO_ROUTE = "none"
_NO_METHOD = "OTHER"


class _Series(NamedTuple):
    """The samples of one histogram or summary with the same labels."""

    labels: Mapping[str, str]
    bounds: list[float]
    below: list[float]
    ends: dict[str, float]


class DataPoints:
    """Makes what an exporter of OpenTelemetry's SDK takes.

    Args:
        resource: Whose numbers they are.
        scheme: "http" or "https".

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
    """

    def __init__(self, resource: Any, scheme: str) -> None:
        self._sdk = needed("opentelemetry.sdk.metrics.export")
        self._resource = resource
        self._scope = needed("opentelemetry.sdk.util.instrumentation").InstrumentationScope(SERVICE, package_version())
        self._scheme = scheme
        self._began_ns = time.time_ns()

    def of(self, families: Iterable[Metric]) -> Any:
        """Everything, as an `opentelemetry.sdk.metrics.export.MetricsData`."""
        now_ns = time.time_ns()
        metrics = [self._metric(family, now_ns) for family in families if family.samples]
        scoped = self._sdk.ScopeMetrics(scope=self._scope, metrics=metrics, schema_url="")
        whole = self._sdk.ResourceMetrics(resource=self._resource, scope_metrics=[scoped], schema_url="")
        return self._sdk.MetricsData(resource_metrics=[whole])

    def _metric(self, family: Metric, now_ns: int) -> Any:
        name, cumulative = family.name, self._sdk.AggregationTemporality.CUMULATIVE
        if family.type == "counter":
            name += "_total"
            data = self._sdk.Sum(self._numbers(family, int, now_ns), cumulative, is_monotonic=True)
        elif family.type == "gauge":
            data = self._sdk.Gauge(self._numbers(family, float, now_ns))
        else:
            data = self._sdk.Histogram([self._histogram(name, one, now_ns) for one in _series(family)], cumulative)
        unit = next((unit for ending, unit in _UNITS.items() if name.endswith(ending)), "")
        return self._sdk.Metric(_NAMES.get(name, name), family.documentation, unit, data)

    def _numbers(self, family: Metric, kind: type[int | float], now_ns: int) -> list[Any]:
        """All of one kind, as a value that is now an integer and now not would be two series to some collectors."""
        return [
            self._sdk.NumberDataPoint(dict(sample.labels), self._began_ns, now_ns, kind(sample.value))
            for sample in family.samples
        ]

    def _histogram(self, name: str, series: _Series, now_ns: int) -> Any:
        """Prometheus counts what is at most as large as each bound, OpenTelemetry what lies between two."""
        between = [int(above - below) for below, above in pairwise((0.0, *series.below))]
        return self._sdk.HistogramDataPoint(
            attributes=self._attributes(name, series.labels),
            start_time_unix_nano=self._began_ns,
            time_unix_nano=now_ns,
            count=int(series.ends["_count"]),
            sum=series.ends["_sum"],
            bucket_counts=between or [int(series.ends["_count"])],
            explicit_bounds=series.bounds,
            min=None,
            max=None,
        )

    def _attributes(self, name: str, labels: Mapping[str, str]) -> dict[str, str | int]:
        if name.startswith("http_server_"):
            return _http(labels, self._scheme)
        if name.startswith("gen_ai_"):
            return _gen_ai(name, labels)
        return dict(labels)


def _series(family: Metric) -> Iterator[_Series]:
    found: dict[tuple[str, ...], _Series] = {}
    for sample in family.samples:
        labels = {name: value for name, value in sample.labels.items() if name != "le"}
        series = found.setdefault(tuple(labels.values()), _Series(labels, [], [], {}))
        _put(series, sample, sample.name[len(family.name) :])
    return iter(found.values())


def _put(series: _Series, sample: Sample, ending: str) -> None:
    if ending != "_bucket":
        series.ends[ending] = sample.value
        return
    series.below.append(sample.value)
    if sample.labels["le"] != "+Inf":
        series.bounds.append(float(sample.labels["le"]))


def _http(labels: Mapping[str, str], scheme: str) -> dict[str, str | int]:
    method, route, status = labels["method"], labels["handler"], labels["status"]
    found: dict[str, str | int] = {
        "http.request.method": "_OTHER" if method == _NO_METHOD else method,
        "http.response.status_code": int(status),
        "url.scheme": scheme,
    }
    if route != _NO_ROUTE:
        found["http.route"] = route
    if int(status) >= 500:
        found["error.type"] = status
    return found


def _gen_ai(name: str, labels: Mapping[str, str]) -> dict[str, str | int]:
    found: dict[str, str | int] = {
        "gen_ai.operation.name": labels["operation"],
        "gen_ai.provider.name": SERVICE,
        "gen_ai.request.model": labels["model"],
    }
    status = labels.get("status", "")
    if status >= "400":
        found["error.type"] = status
    if name.endswith("_token_usage"):
        found["gen_ai.token.type"] = "input"
    return found
