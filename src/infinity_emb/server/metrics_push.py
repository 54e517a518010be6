"""OpenTelemetry: what `/metrics` shows, sent to a collector now and then; requests pay nothing for it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import ConfigurationError
from infinity_emb.server.aside import aside
from infinity_emb.server.data_points import DataPoints
from infinity_emb.server.telemetry import METRICS, OncePerMinute, calmed, needed, resource_of, signal_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from prometheus_client.metrics_core import Metric

    Collect = Callable[[], Iterable[Metric]]

logger = logging.getLogger("infinity_emb.metrics_push")
logger.addFilter(OncePerMinute())

_INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
_INTERVAL_MS = 60_000


class MetricsPush:
    """Sends families every so often and once more at the end, one sending at a time: a slow collector piles up nothing.

    Args:
        collect: Gives the families; called in the thread of the event loop.
        points: Makes an exporter's data of them.
        exporter: An `opentelemetry.sdk.metrics.export.MetricExporter`; called in a thread of its own.
        interval_s: Time between two sendings.
    """

    def __init__(self, collect: Collect, points: DataPoints, exporter: Any, interval_s: float) -> None:
        self._collect = collect
        self._points = points
        self._exporter = exporter
        self._interval_s = interval_s
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, in the running event loop."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Send the last numbers; returns when they are sent, or will not be."""
        self._stopping.set()
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while not await self._stops_within_the_interval():
            await self._push()
        await self._push()
        await aside(self._exporter.shutdown, "metrics-push")

    async def _stops_within_the_interval(self) -> bool:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), self._interval_s)
        return self._stopping.is_set()

    async def _push(self) -> None:
        try:
            families = tuple(self._collect())
            await aside(lambda: self._exporter.export(self._points.of(families)), "metrics-push")
        except Exception:  # the boundary: whatever fails here, requests and the next sending go on
            logger.exception("The metrics could not be sent; trying again in %g s.", self._interval_s)


def push_of(variables: Mapping[str, str], collect: Collect, *, asked: bool, scheme: str) -> MetricsPush | None:
    """What sends metrics as the `OTEL_*` variables say, or None if nobody wants it.

    Args:
        variables: The environment; the SDK itself reads addresses, headers and limits from it.
        collect: See `MetricsPush`.
        asked: `--otel` was given.
        scheme: "http" or "https", whichever the server answers.

    Raises:
        MissingExtraError: See `signal_of`.
        ConfigurationError: As above.
    """

    def build(exporter: str) -> MetricsPush:
        points = DataPoints(resource_of(variables), scheme)
        return MetricsPush(collect, points, _exporter(exporter), _interval_s(variables))

    return signal_of(METRICS, variables, build, asked=asked)


def _exporter(name: str) -> Any:
    if name == "console":
        return needed("opentelemetry.sdk.metrics.export").ConsoleMetricExporter()
    return calmed(needed("opentelemetry.exporter.otlp.proto.http.metric_exporter")).OTLPMetricExporter()


def _interval_s(variables: Mapping[str, str]) -> float:
    raw = variables.get(_INTERVAL, "").strip() or str(_INTERVAL_MS)
    try:
        interval_ms = float(raw)
    except ValueError:
        interval_ms = math.nan
    if not 0 < interval_ms < math.inf:
        raise ConfigurationError(
            f"{_INTERVAL} is {raw!r}; it must be a positive number of milliseconds.", param=_INTERVAL
        )
    return interval_ms / 1000
