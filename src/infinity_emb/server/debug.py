"""What waits and what runs right now, for operators; no text of any request."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from infinity_emb.server.response import Response, json_response

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.serving import Serving

SHOWN = 100  # requests of each waiting line


async def debug(_: Request, serving: Serving) -> Response:
    """The waiting line of each model, first come first, and the requests that wait for an answer."""
    models = []
    for engine in serving.models:
        status = engine.overload_status()
        models.append(
            {
                "id": engine.card.served_name,
                "healthy": engine.is_healthy,
                "restarts": engine.restarts,
                "batch_busy_s": round(engine.busy_s(), 3),
                "queue": asdict(status),
                "waiting": [asdict(request) for request in engine.waiting_line(SHOWN)],
            }
        )
    facts = {
        "phase": serving.models.lifecycle.phase.value,
        "in_flight": serving.in_flight.snapshot()[:SHOWN],
        "models": models,
    }
    return json_response(facts)
