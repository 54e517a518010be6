"""Models of several routes: each is loaded, checked and served as a model of its own, and they answer as one."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.models.preprocess.routes import choose_route

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.engine.loader import LoadedModel
    from infinity_emb.engine.runtime import ModelRuntime
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.models.spec.routed import RoutesSpec
    from infinity_emb.types import EmbedOptions, ModelCard, TextOptions

_DIGITS = 16
# Facts of a route's own card that are shown under its name.
_SHOWN = ("architecture", "graph", "fidelity_min_cosine", "fidelity_max_abs_error", "fidelity_top10_agreement")
# Of these the model's own is that of the worst route.
_WORST = {"fidelity_min_cosine": min, "fidelity_max_abs_error": max, "fidelity_top10_agreement": min}


def load_routes(routes: RoutesSpec, load: Callable[[ModelSpec], LoadedModel]) -> LoadedModel:
    """Load every route; the default one has the others beside it and one card for all.

    Raises: whatever `load` raises.
    """
    loaded: dict[str, LoadedModel] = {}
    try:
        for name, spec in routes.by_name.items():
            loaded[name] = load(spec)
    except BaseException:
        for model in loaded.values():
            model.close()
        raise
    own = loaded[routes.first]
    card = _joint_card(routes, {name: model.card for name, model in loaded.items()})
    others = {name: model for name, model in loaded.items() if name != routes.first}
    return replace(own, spec=replace(own.spec, routes=routes), card=card, routes=others)


class RouteEngines:
    """The engines of the other routes, and which texts are theirs.

    Args:
        spec: Of the model, with its routes.
        engines: By name, without that of the default route.
    """

    def __init__(self, spec: ModelSpec, engines: dict[str, AsyncEmbeddingEngine]) -> None:
        self._spec = spec
        self._engines = engines

    def choose(self, options: EmbedOptions) -> tuple[AsyncEmbeddingEngine | None, EmbedOptions]:
        """The engine that reads such texts, None for that of the default route, and how it reads them.

        Raises:
            InvalidInputError: No route is for them.
        """
        if self._spec.routes is None:
            return None, options
        engine, text = self.choose_text(options.text)
        return engine, options if text is options.text else replace(options, text=text)

    def choose_text(self, options: TextOptions) -> tuple[AsyncEmbeddingEngine | None, TextOptions]:
        """As `choose`."""
        if self._spec.routes is None:
            return None, options
        name, read = choose_route(self._spec, self._spec.routes, options)
        return self._engines.get(name), read

    @property
    def runtimes(self) -> list[ModelRuntime]:
        """What computes."""
        return [runtime for engine in self._engines.values() for runtime in engine.runtimes]

    def start(self) -> None:
        """Start every engine; on a failure none is left running."""
        try:
            for engine in self._engines.values():
                engine.start()
        except BaseException:
            self.stop(0.0)
            raise

    def stop(self, grace_s: float) -> None:
        """Answer what was accepted within the grace period, then stop."""
        for engine in self._engines.values():
            engine.stop(grace_s)

    def close(self) -> None:
        """Give the memory back."""
        for engine in self._engines.values():
            engine.close()


def _joint_card(routes: RoutesSpec, cards: Mapping[str, ModelCard]) -> ModelCard:
    """That of the default route, which tells of the others where they differ."""
    own = cards[routes.first]
    facts: dict[str, Any] = {"routes": ", ".join(cards), "default_route": routes.default or ""}
    for name, card in cards.items():
        facts |= {f"{name}_{fact}": card.extra[fact] for fact in _SHOWN if fact in card.extra}
        facts |= {f"{name}_backend": card.backend, f"{name}_dtype": card.dtype, f"{name}_max_length": card.max_length}
        facts |= {f"{name}_pooling": card.pooling}
    for fact, worst in _WORST.items():
        known = [card.extra[fact] for card in cards.values() if fact in card.extra]
        facts |= {fact: worst(known)} if known else {}
    fingerprints = [f"{name} {cards[name].extra['fingerprint']}" for name in sorted(cards)]
    everything = " ".join((*fingerprints, "default", facts["default_route"]))
    facts["fingerprint"] = hashlib.sha256(everything.encode()).hexdigest()[:_DIGITS]
    facts["notes"] = "; ".join(f"{name}: {card.extra['notes']}" for name, card in cards.items() if card.extra["notes"])
    facts["load_s"] = round(sum(float(card.extra["load_s"]) for card in cards.values()), 2)
    normalized = all(card.normalized for card in cards.values())
    return replace(own, normalized=normalized, extra={**own.extra, **facts})
