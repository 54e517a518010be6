"""The ASGI application: route, check, read, answer, count (hot path)."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from infinity_emb.errors import InfinityError
from infinity_emb.metrics import FIDELITY
from infinity_emb.server.access import Access, enter
from infinity_emb.server.access_file import KeyFile
from infinity_emb.server.access_log import log_request
from infinity_emb.server.body import read_body
from infinity_emb.server.cors import cors_headers, is_preflight, preflight_response
from infinity_emb.server.errors import ClientGoneError, error_response, fault_of
from infinity_emb.server.guard import Guard
from infinity_emb.server.request import Request
from infinity_emb.server.response import Response
from infinity_emb.server.routes import all_routes
from infinity_emb.server.routing import Router
from infinity_emb.server.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from infinity_emb.metrics import HttpMetrics, ModelGauges, ModelMeasures
    from infinity_emb.server.lifecycle import Models
    from infinity_emb.server.request import Receive, Scope, Send
    from infinity_emb.server.routing import Route
    from infinity_emb.server.settings import HttpSettings
    from infinity_emb.server.tracing import Tracing

    SendResponse = Callable[[Request, Response], Awaitable[None]]

logger = logging.getLogger("infinity_emb")
_ALWAYS = "always"
_OPERATOR = "operator"
_UNMATCHED = "none"


class Application:
    """Everything that one port answers.

    Args:
        models: The engines, and whether they are loaded.
        settings: Options.
        metrics: Counters; shared by the ports of one server.
        access: Keys; shared by the ports of one server, as their limits count everywhere.
        tracing: Writes a span for each request; None writes none.
    """

    def __init__(
        self,
        models: Models,
        settings: HttpSettings,
        metrics: HttpMetrics,
        access: Access | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        routes = all_routes(settings)
        self.serving = Serving(settings, models, metrics, routes)
        self._router = Router(routes)
        self._access = access or access_of(settings)
        self._root_path = settings.proxy_root_path
        self._tracing = tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection event as ASGI has it."""
        if scope["type"] == "http":
            request = Request(scope, receive)
            self._strip(request, scope.get("root_path", ""))
            await self.serve(request, lambda request, response: _send(request, response, send))
        elif scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1000})

    async def serve(self, request: Request, send: SendResponse) -> None:
        """Answer one request, unless its client leaves; `send` is called at most once."""
        started_s = time.perf_counter()
        if self._root_path:
            self._strip(request, self._root_path)
        route: Route | None = None
        try:
            route, response = self._before(request)
            if route is not None and response is None:
                response = await self._answer(route, request)
        except ClientGoneError:
            self.serving.metrics.record_abandoned()
            return
        except InfinityError as error:
            response = self._refusal(error, request)
        except Exception as error:  # the boundary: whatever a bug raises, the client gets an answer
            logger.exception("Request %s to %s failed.", request.request_id, request.path)
            response = error_response(error, request)
        if response is None:
            raise AssertionError("this is a bug: a request was neither answered nor refused")
        self._complete(request, response)
        handler = _UNMATCHED if route is None else route.path
        span = None
        if self._tracing is not None:
            span = self._tracing.start(request, handler, response, time.perf_counter() - started_s)
        await send(request, response)
        took_s = time.perf_counter() - started_s
        method = request.method if route is not None else "OTHER"
        self._count(request, (handler, method), response, took_s)
        if self._tracing is not None:
            self._tracing.end(span, request, response.status)
        if self.serving.settings.access_log:
            log_request(request, response, handler, took_s)

    def _count(self, request: Request, operation: tuple[str, str], response: Response, took_s: float) -> None:
        """Count an answered request; `operation` is its handler and its method."""
        metrics, times = self.serving.metrics, request.times
        metrics.record(*operation, response.status, (len(request.body), len(response.body)), took_s)
        if times.operation:
            metrics.record_operation(times.model, times.operation, response.status, took_s)
        if times.computed_s:
            metrics.record_stages(times.model, times.seconds(time.monotonic()))

    def _before(self, request: Request) -> tuple[Route | None, Response | None]:
        """Find the route and let the request in, before its body is read."""
        settings = self.serving.settings
        if settings.permissive_cors and is_preflight(request):
            return None, preflight_response(request)
        shorter = self._router.redirect_target(request)
        if shorter is not None:
            return None, self._redirect(request, shorter)
        route = self._router.match(request)
        request.dialect = route.dialect
        request.native = route.native
        if route.access == _OPERATOR:
            request.grant = self._access.check_operator(request)
        elif route.access != _ALWAYS and route.access not in settings.public_routes:
            request.grant = self._access.check(request)
        enter(request.grant)
        return route, None

    async def _answer(self, route: Route, request: Request) -> Response:
        if route.body is None:
            return await route.handler(request, self.serving)
        self.serving.models.check_open()
        settings = self.serving.settings
        request.start_clock(settings.request_timeout_s)
        request.body = await read_body(request, settings)
        with Guard(request, self.serving.in_flight):
            return await route.handler(request, self.serving)

    def _refusal(self, error: InfinityError, request: Request) -> Response:
        fault = fault_of(error)
        self.serving.metrics.record_refusal(fault.code)
        if fault.status == 500:
            logger.warning("Request %s to %s: %s", request.request_id, request.path, error)
        return error_response(error, request)

    def _complete(self, request: Request, response: Response) -> None:
        """Add the headers that every answer has."""
        headers = response.headers
        headers.append((b"x-request-id", request.request_id.encode("ascii")))
        if response.content_type:
            headers.append((b"content-type", response.content_type))
        if response.status != 204:
            headers.append((b"content-length", b"%d" % len(response.body)))
        if self.serving.settings.permissive_cors:
            headers += cors_headers(request)

    def _strip(self, request: Request, root: str) -> None:
        """Take away what a mount or a proxy put before the path."""
        if root and request.path.startswith(root + "/"):
            request.path = request.path[len(root) :]

    def _redirect(self, request: Request, path: str) -> Response:
        """307 keeps the method and the body."""
        query = b"?" + request.query if request.query else b""
        location = (self._root_path + path).encode() + query
        return Response(b"", status=307, content_type=b"", headers=[(b"location", location)])


def access_of(settings: HttpSettings) -> Access:
    """The keys that the options name.

    Raises:
        ConfigurationError: The key file cannot be read or is wrong.
    """
    file = None if settings.api_key_file is None else KeyFile(settings.api_key_file)
    return Access(settings.api_keys, settings.operator_keys, file)


async def _send(request: Request, response: Response, send: Send) -> None:
    """The answer as ASGI has it."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else response.body})


async def _lifespan(receive: Receive, send: Send) -> None:
    """Models load elsewhere, so start-up has nothing to wait for."""
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return


def model_measures(models: Models) -> Iterator[ModelMeasures]:
    """What is counted of the batches and the cache of each model."""
    for engine in models:
        batches, cache = engine.batch_measures(), engine.cache_counts
        histograms = {} if batches is None else {"tokens": batches.tokens, "fill_ratio": batches.fill}
        yield engine.card.served_name, histograms, {} if cache is None else asdict(cache)


def model_gauges(models: Models) -> Iterator[ModelGauges]:
    """What the models say of themselves at each scrape."""
    for engine in models:
        status, facts = engine.overload_status(), engine.card.extra
        yield (
            engine.card.served_name,
            {
                "infinity_queue_items": status.queue_absolute,
                "infinity_queue_fraction": status.queue_fraction,
                "infinity_running_items": status.results_absolute,
                "infinity_queue_tokens": status.queue_tokens,
                "infinity_queue_oldest_seconds": status.oldest_wait_s,
                "infinity_tokens_per_second": status.tokens_per_s,
                "infinity_batch_busy_seconds": engine.busy_s(),
                "infinity_worker_restarts": engine.restarts,
                "infinity_model_up": float(engine.is_healthy),
                **{f"infinity_{name}": float(facts[name]) for name in FIDELITY if name in facts},
            },
        )
