"""The block that is shown when the server is ready."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING

from infinity_emb.types import Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infinity_emb.types import ModelCard

_NAME_WIDTH = 12

_FIRST_REQUEST: dict[Task, tuple[str, dict[str, object]]] = {
    Task.EMBED: ("/v1/embeddings", {"input": ["Hello, world"]}),
    Task.RERANK: ("/rerank", {"query": "capital of France", "documents": ["Paris is in France", "Cats purr"]}),
    Task.CLASSIFY: ("/classify", {"input": ["I like this"]}),
    Task.SPARSE: ("/embed_sparse", {"inputs": ["Hello, world"]}),
    Task.MULTI_VECTOR: ("/v1/embeddings", {"input": ["Hello, world"], "input_type": "query"}),
}


def render(cards: Sequence[ModelCard], urls: Sequence[str], tuned: Mapping[str, str] = MappingProxyType({})) -> str:
    """The whole block: every model, where the server answers, what to try next.

    Args:
        cards: The models, in the order they were given.
        urls: Addresses of the server; the first one is used in the examples.
        tuned: For models that are computed as `infinity_emb tune` chose: served name → file of the choice.
    """
    blocks = ["\n".join(_model(card) + _tuned(card, tuned)) for card in cards]
    url = urls[0]
    addresses = [_row("URL", address) for address in urls]
    if not url.startswith("unix:"):
        addresses.append(_row("docs", f"{url}/docs"))
    blocks += ["\n".join(addresses), "\n".join(["  Try next", *_next_steps(cards, url)])]
    return "\n" + "\n\n".join(blocks) + "\n"


def facts(card: ModelCard) -> dict[str, object]:
    """The same about one model, for a JSON log line."""
    return {
        "served_name": card.served_name,
        "model_id": card.model_id,
        "source": card.source,
        "revision": card.revision,
        "tasks": sorted(map(str, card.tasks)),
        "backend": card.backend,
        "device": card.device,
        "dtype": card.dtype,
        "dim": card.dim,
        "max_length": card.max_length,
    }


def _row(name: str, value: str) -> str:
    return f"    {name:{_NAME_WIDTH}} {value}"


def _model(card: ModelCard) -> list[str]:
    rows = [f"  {card.served_name}"]
    if card.served_name != card.model_id:
        rows.append(_row("model", card.model_id))
    rows.append(_row("source", card.source))
    if card.revision:
        rows.append(_row("revision", card.revision))
    tasks = ", ".join(sorted(map(str, card.tasks)))
    rows.append(_row("task", f"{tasks} ({', '.join(sorted(map(str, card.modalities)))})"))
    rows.append(_row("engine", f"{card.backend} on {card.device}"))
    rows.append(_row("dtype", card.dtype))
    if card.dim:
        length = ", unit length" if card.normalized else ""
        rows.append(_row("vectors", f"{card.dim} numbers, pooling {card.pooling}{length}"))
    if card.labels:
        rows.append(_row("labels", ", ".join(card.labels[:8]) + (", …" if len(card.labels) > 8 else "")))
    rows.append(_row("max length", f"{card.max_length} tokens"))
    if card.prompts:
        default = f" (default: {card.default_prompt_name})" if card.default_prompt_name else ""
        rows.append(_row("prompts", ", ".join(card.prompts) + default))
    return rows + [_row(name.replace("_", " "), _shown(value)) for name, value in card.extra.items() if value != ""]


def _tuned(card: ModelCard, tuned: Mapping[str, str]) -> list[str]:
    path = tuned.get(card.served_name)
    return [] if path is None else [_row("tuned", f"as measured by infinity_emb tune ({path}; --no-tuned ignores it)")]


def _shown(value: str | float) -> str:
    """Measured figures to four places, which is all a person reads of them."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _next_steps(cards: Sequence[ModelCard], url: str) -> list[str]:
    steps: list[str] = []
    seen: set[Task] = set()
    for card in cards:
        for task in sorted(card.tasks - seen, key=str):
            seen.add(task)
            path, body = _FIRST_REQUEST[task]
            named = body if len(cards) == 1 else {"model": card.served_name, **body}
            steps.append(f"    curl {_target(url, path)} -H 'content-type: application/json' -d '{json.dumps(named)}'")
    return steps


def _target(url: str, path: str) -> str:
    if url.startswith("unix:"):
        return f"--unix-socket {url.removeprefix('unix:')} http://localhost{path}"
    return url + path
