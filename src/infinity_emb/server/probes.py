"""Health for people, load balancers and Kubernetes; none of them waits for a model."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from infinity_emb.server.lifecycle import LOADING_RETRY_S, Phase
from infinity_emb.server.response import Response, json_response

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.serving import Serving

_METRICS_TYPE = b"text/plain; version=1.0.0; charset=utf-8"
_RETRY = [(b"retry-after", str(LOADING_RETRY_S).encode())]


async def health(_: Request, serving: Serving) -> Response:
    """200 with the server's clock when every model can answer, else 503 naming those that cannot."""
    if serving.models.can_answer():
        return json_response({"unix": time.time()})
    return _not_ready(serving, {"unix": time.time()})


async def livez(_: Request, serving: Serving) -> Response:
    """200 while the process answers at all; a restart helps only if this fails."""
    return json_response({"status": "alive", "phase": serving.models.lifecycle.phase.value})


async def readyz(_: Request, serving: Serving) -> Response:
    """200 while requests are welcome: loaded, not draining, every engine up."""
    if serving.models.can_answer():
        return json_response({"status": "ready"})
    return _not_ready(serving, {})


async def startupz(_: Request, serving: Serving) -> Response:
    """Progress of start-up; 200 once it is over."""
    lifecycle = serving.models.lifecycle
    started = lifecycle.phase in {Phase.READY, Phase.DRAINING}
    return json_response(lifecycle.progress(), status=200 if started else 503, headers=None if started else [*_RETRY])


async def metrics(_: Request, serving: Serving) -> Response:
    """Counters as Prometheus text."""
    return Response(serving.metrics.exposition(), content_type=_METRICS_TYPE)


async def home(request: Request, serving: Serving) -> Response:
    """Send a browser to the documentation; TEI's clients take it for a health check."""
    target = serving.settings.redirect_slash
    if not target:
        return await health(request, serving)
    location = (serving.settings.proxy_root_path + target).encode("ascii", "ignore")
    return Response(b"", status=307, content_type=b"", headers=[(b"location", location)])


def _not_ready(serving: Serving, facts: dict[str, Any]) -> Response:
    phase = serving.models.lifecycle.phase
    status: dict[str, Any] = {"status": phase.value}
    if phase is Phase.READY:
        status = {"status": "down", "models": serving.models.unable()}
    return json_response({**facts, **status}, status=503, headers=[*_RETRY])
