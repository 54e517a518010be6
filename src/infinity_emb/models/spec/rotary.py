"""Tells which checkpoints turn a long text otherwise than a short one (rotary scalings by the length of the text)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infinity_emb.models.spec.model import ModelSpec


def depends_on_length(spec: ModelSpec) -> str:
    """Name of the scaling if texts of a length that the checkpoint reads differ in it; else empty."""
    positions = spec.config.get("max_position_embeddings")
    for settings in _settings(spec.config):
        kind = str(settings.get("rope_type") or settings.get("type") or "")
        original = spec.config.get("original_max_position_embeddings")
        limit = positions if "dynamic" in kind else original or settings.get("original_max_position_embeddings")
        if ("dynamic" in kind or kind in {"longrope", "su"}) and spec.max_length > (limit or positions or 0):
            return kind
    return ""


def _settings(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """`rope_scaling` and `rope_parameters`, those of single kinds of layers included."""
    for field in ("rope_scaling", "rope_parameters"):
        found = config.get(field)
        if isinstance(found, dict):
            yield found
            yield from (part for part in found.values() if isinstance(part, dict))
