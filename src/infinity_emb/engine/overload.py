"""How full the waiting lines of one engine are, taken together: that of texts, and one for each other modality."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.types import OverloadStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.engine.runtime import ModelRuntime


def overload_of(runtimes: Sequence[ModelRuntime]) -> OverloadStatus:
    """Sums over the lines; the fraction and the wait are those of the fullest and the slowest."""
    if not runtimes:
        return OverloadStatus(0.0, 0, 0)
    lines = [(runtime.load(), runtime.limits) for runtime in runtimes]
    loads = [load for load, _ in lines]
    return OverloadStatus(
        max(max(load.items / limits.items, load.tokens / limits.tokens) for load, limits in lines),
        sum(load.items for load in loads),
        sum(load.running_items for load in loads),
        sum(load.tokens for load in loads),
        max(load.oldest_wait_s for load in loads),
        sum(load.tokens_per_s for load in loads),
    )
