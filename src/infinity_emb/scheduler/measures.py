"""Hot path. What is counted of batches, under the dispatcher's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.measures import Histogram

if TYPE_CHECKING:
    from infinity_emb.scheduler.batch import Batch

TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
FILL = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


class BatchMeasures:
    """Two histograms over the batches that were computed.

    Attributes:
        tokens: Real tokens of a batch.
        fill: Share of its slots that held real tokens; the rest was padding.
    """

    __slots__ = ("fill", "tokens")

    def __init__(self) -> None:
        self.tokens = Histogram(TOKENS)
        self.fill = Histogram(FILL)

    def observe(self, batch: Batch) -> None:
        """Count one batch."""
        self.tokens.observe(batch.tokens)
        self.fill.observe(batch.tokens / (batch.rows * batch.width))

    def copy(self) -> BatchMeasures:
        """As they stand now."""
        copied = BatchMeasures()
        copied.tokens, copied.fill = self.tokens.copy(), self.fill.copy()
        return copied
