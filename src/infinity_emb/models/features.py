"""Hot path. What a preprocessor makes of one input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(slots=True)
class Features:
    """One input, ready to be packed into a batch.

    Attributes:
        token_ids: Int64 array `[tokens]`, special tokens included, no padding, already truncated. Of an image or sound
            they are zeros: their number is what it costs.
        type_ids: Int64 array `[tokens]`, or None where all are 0.
        prompt_tokens: Leading tokens that belong to the prompt (special tokens at the front included);
            0 if there is no prompt or pooling includes it.
        truncated: True if the input was cut.
        adapter: Number of the adapter it is read with from 1 on, 0 for none.
        empty: True if the input has no tokens; one stands in for it, which does not count.
        unseen_tokens: Trailing tokens that see the others but are seen by none (a query filled up).
        arrays: What the model reads of an image or sound, by name; None for text.
    """

    token_ids: NDArray[np.int64]
    type_ids: NDArray[np.int64] | None = None
    prompt_tokens: int = 0
    truncated: bool = False
    unseen_tokens: int = 0
    arrays: dict[str, NDArray[np.float32]] | None = None
    empty: bool = False
    adapter: int = 0

    @property
    def cost(self) -> int:
        """Tokens it takes in a batch."""
        return len(self.token_ids)
