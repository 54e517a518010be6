"""What a checkpoint says of the images or sounds it reads, as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infinity_emb.types import Modality


@dataclass(frozen=True, slots=True)
class MediaSpec:
    """One modality beside text.

    Attributes:
        modality: Image or audio.
        positions: States that the model computes for one item, which is what the item costs in a batch.
        arrays: Name of each array the model takes → its shape for one item; all are float32.
        settings: The preprocessor's options, as the repository writes them.
    """

    modality: Modality
    positions: int
    arrays: dict[str, tuple[int, ...]]
    settings: dict[str, Any] = field(default_factory=dict)
