"""What is known of a chain of modules while modules.json is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModuleSpec


@dataclass(frozen=True, slots=True)
class Chain:
    """What follows the first module, and the widths that flow through it.

    Attributes:
        token_width: Width of a token state at this point.
        vector_width: Width of the pooled vector; 0 before pooling.
        modules: Read so far.
        notes: For the start-up block.
        layered: The transformer gives the states of its layers.
        rows: Token ids there are; 0 if that is not known.
        worded: The first module reads whole words.
    """

    token_width: int
    vector_width: int = 0
    modules: tuple[ModuleSpec, ...] = ()
    notes: tuple[str, ...] = ()
    layered: bool = False
    rows: int = 0
    worded: bool = False
