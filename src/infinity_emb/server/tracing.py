"""OpenTelemetry: a span for each request, made when its answer is, so that nothing is done before that."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from infinity_emb.measures import STAGES
from infinity_emb.server.telemetry import SERVICE, TRACES, calmed, needed, resource_of, signal_of
from infinity_emb.server.version import package_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response

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
        self._api = needed("opentelemetry.trace")
        self._propagator = needed("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()
        self._provider = provider
        self._tracer = provider.get_tracer(SERVICE, package_version())

    def start(self, request: Request, route: str, response: Response, took_s: float) -> Any:
        """The span of a request whose answer is made; its parent is what `traceparent` names.

        If it is sampled, the answer says which span it was, in `traceresponse`.
        """
        headers = {name: request.header(name.encode()) for name in _CARRIED if name.encode() in request.headers}
        span = self._tracer.start_span(
            f"{request.method} {route}",
            context=self._propagator.extract(headers),
            kind=self._api.SpanKind.SERVER,
            start_time=time.time_ns() - int(took_s * _NS),
            attributes=_attributes(request, route, response.status),
        )
        context = span.get_span_context()
        if context.trace_flags.sampled:
            told = b"00-%032x-%016x-%02x" % (context.trace_id, context.span_id, context.trace_flags)
            response.headers.append((b"traceresponse", told))
        return span

    def end(self, span: Any, request: Request, status: int) -> None:
        """Close the span of a request that has just been answered."""
        if request.times.computed_s:
            seconds = request.times.seconds(time.monotonic())
            span.set_attributes({f"infinity.{stage}_s": value for stage, value in zip(STAGES, seconds, strict=True)})
        if status >= 500:
            span.set_status(self._api.StatusCode.ERROR)
        span.end()

    def close(self) -> None:
        """Send what is left; blocks until it is sent or given up."""
        self._provider.shutdown()


def tracing_of(variables: Mapping[str, str], *, asked: bool) -> Tracing | None:
    """Spans as the `OTEL_*` variables say, or None if nobody wants any.

    Args:
        variables: The environment; the SDK itself reads addresses, headers, sampling and limits from it.
        asked: `--otel` was given.

    Raises:
        MissingExtraError: See `signal_of`.
        ConfigurationError: As above.
    """
    return signal_of(TRACES, variables, lambda exporter: Tracing(_provider(variables, exporter)), asked=asked)


def _provider(variables: Mapping[str, str], exporter: str) -> Any:
    sdk = needed("opentelemetry.sdk.trace")
    export = needed("opentelemetry.sdk.trace.export")
    if exporter == "console":
        writes = export.ConsoleSpanExporter()
    else:
        writes = calmed(needed("opentelemetry.exporter.otlp.proto.http.trace_exporter")).OTLPSpanExporter()
    provider = sdk.TracerProvider(resource=resource_of(variables))
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
    if times.operation:
        found |= {"gen_ai.operation.name": times.operation, "gen_ai.request.model": times.model}
        found["gen_ai.provider.name"] = SERVICE
    if status >= 500:
        found["error.type"] = str(status)
    if times.computed_s:
        found["infinity.computed_tokens"] = times.tokens
    return found
