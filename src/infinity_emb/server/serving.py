"""What every handler gets beside the request."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from infinity_emb.server.guard import InFlight

if TYPE_CHECKING:
    from infinity_emb.metrics import HttpMetrics
    from infinity_emb.server.lifecycle import Models
    from infinity_emb.server.routing import Route
    from infinity_emb.server.settings import HttpSettings


@dataclass
class Serving:
    """One application's parts.

    Attributes:
        settings: Options.
        models: Engines of this port.
        metrics: Counters.
        routes: Everything that is served, for the OpenAPI document.
        in_flight: Requests that wait for an engine.
    """

    settings: HttpSettings
    models: Models
    metrics: HttpMetrics
    routes: tuple[Route, ...] = ()
    in_flight: InFlight = field(default_factory=InFlight)
