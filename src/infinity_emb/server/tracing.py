"""OpenTelemetry: a span for each request, written when it has been answered, so that nothing is done before that."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from infinity_emb import extras
from infinity_emb.errors import MissingExtraError
from infinity_emb.measures import STAGES
from infinity_emb.server.version import package_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infinity_emb.server.request import Request

logger = logging.getLogger("infinity_emb")

_PURPOSE = "--otel"
_SERVICE = "infinity_emb"
# Whoever sets one of these wants traces.
_WANTED_BY = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_TRACES_EXPORTER")
_CARRIED = ("traceparent", "tracestate")
_NS = 1_000_000_000


class Tracing:
    """Writes spans through one provider of OpenTelemetry's SDK.

    Args:
        provider: An `opentelemetry.sdk.trace.TracerProvider`.

    Raises:
        MissingExtraError: OpenTelemetry is not installed.
    """

    def __init__(self, provider: Any) -> None:
        self._api = extras.require("opentelemetry.trace", "otel", _PURPOSE)
        carrier = extras.require("opentelemetry.trace.propagation.tracecontext", "otel", _PURPOSE)
        self._propagator = carrier.TraceContextTextMapPropagator()
        self._provider = provider
        self._tracer = provider.get_tracer(_SERVICE, package_version())

    def record(self, request: Request, route: str, status: int, took_s: float) -> None:
        """Write the span of a request that has just been answered; its parent is what `traceparent` names."""
        headers = {name: request.header(name.encode()) for name in _CARRIED if name.encode() in request.headers}
        end_ns = time.time_ns()
        span = self._tracer.start_span(
            f"{request.method} {route}",
            context=self._propagator.extract(headers),
            kind=self._api.SpanKind.SERVER,
            start_time=end_ns - int(took_s * _NS),
            attributes=_attributes(request, route, status),
        )
        if status >= 500:
            span.set_status(self._api.StatusCode.ERROR)
        span.end(end_ns)

    def close(self) -> None:
        """Send what is left; blocks until it is sent or given up."""
        self._provider.shutdown()


def tracing_of(variables: Mapping[str, str], *, asked: bool) -> Tracing | None:
    """Spans as the `OTEL_*` variables say, or None if nobody wants any.

    Args:
        variables: The environment; the SDK itself reads addresses, headers, sampling and limits from it.
        asked: `--otel` was given.

    Raises:
        MissingExtraError: `--otel` was given and OpenTelemetry is not installed. If only a variable asks for it, which
            may be meant for others, that is a warning.
    """
    exporter = variables.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return None
    named = next((name for name in _WANTED_BY if variables.get(name)), None)
    if not asked and named is None:
        return None
    try:
        return Tracing(_provider(variables, exporter))
    except MissingExtraError as error:
        if asked:
            raise
        logger.warning("%s is set, but there will be no traces: %s", named, error)
        return None


def _provider(variables: Mapping[str, str], exporter: str) -> Any:
    sdk = extras.require("opentelemetry.sdk.trace", "otel", _PURPOSE)
    export = extras.require("opentelemetry.sdk.trace.export", "otel", _PURPOSE)
    resources = extras.require("opentelemetry.sdk.resources", "otel", _PURPOSE)
    if exporter == "console":
        writes = export.ConsoleSpanExporter()
    else:
        sends = extras.require("opentelemetry.exporter.otlp.proto.http.trace_exporter", "otel", _PURPOSE)
        writes = sends.OTLPSpanExporter()
    service = variables.get("OTEL_SERVICE_NAME") or _SERVICE
    provider = sdk.TracerProvider(resource=resources.Resource.create({"service.name": service}))
    provider.add_span_processor(export.BatchSpanProcessor(writes))
    return provider


def _attributes(request: Request, route: str, status: int) -> dict[str, str | int | float]:
    """Names of OpenTelemetry's conventions for HTTP and generative AI; our own for the stages. No text of a request."""
    found: dict[str, str | int | float] = {
        "http.request.method": request.method,
        "http.route": route,
        "http.response.status_code": status,
        "http.request.body.size": len(request.body),
        "infinity.request_id": request.request_id,
    }
    times = request.times
    if times.model:
        found["gen_ai.request.model"] = times.model
    if times.computed_s:
        seconds = times.seconds(time.monotonic())
        found |= {f"infinity.{stage}_s": value for stage, value in zip(STAGES, seconds, strict=True)}
        found["infinity.computed_tokens"] = times.tokens
    return found
