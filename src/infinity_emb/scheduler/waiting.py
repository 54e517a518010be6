"""What can be told of a request that waits, without what it says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.scheduler.request import Request


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request in the waiting line.

    Attributes:
        priority: Its class.
        items: All its items.
        waiting_items: Those not yet picked for a batch.
        waiting_tokens: Tokens of those.
        waited_s: Since it was admitted.
        deadline_in_s: Until nobody waits for it any more; None is no limit.
    """

    priority: str
    items: int
    waiting_items: int
    waiting_tokens: int
    waited_s: float
    deadline_in_s: float | None


def describe(request: Request, now_s: float) -> Waiting:
    """A request as it is now; the waiting line is locked."""
    return Waiting(
        priority=request.priority.name.lower(),
        items=len(request.items),
        waiting_items=len(request.pending),
        waiting_tokens=request.waiting_tokens,
        waited_s=round(now_s - request.arrived_s, 3),
        deadline_in_s=None if request.deadline_s is None else round(request.deadline_s - now_s, 3),
    )
