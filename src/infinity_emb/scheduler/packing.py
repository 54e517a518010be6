"""Hot path. Where texts go in the rows of a batch: first fit, in the order they are offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.backends.base import Layout

# Narrow rows make attention cheap, but a row should hold a few short texts.
PACKED_ROW_MIN = 64


def fitting_width(layout: Layout, tokens: int) -> int:
    """Smallest allowed row width that holds `tokens`; the largest one if none does."""
    for width in layout.widths:
        if width >= tokens:
            return width
    return layout.widths[-1]


class Packer:
    """Rows being filled; pure arithmetic.

    Args:
        layout: What the backend wants.
        longest: Longest text that will be offered.
        total: Tokens of all texts that may be offered.
        max_items: Most texts in the batch.
    """

    __slots__ = ("_free", "_layout", "_max_items", "_max_rows", "_open", "items", "starts", "width")

    def __init__(self, layout: Layout, longest: int, total: int, max_items: int) -> None:
        self._layout = layout
        self._max_items = max_items
        if layout.segments_per_row is None:
            wanted = max(longest, min(PACKED_ROW_MIN, total))
            self.width = fitting_width(layout, wanted)
        else:
            self.width = fitting_width(layout, longest)
        self._max_rows = layout.max_rows or max(1, layout.batch_tokens // self.width)
        self._free: list[int] = []
        self._open = 0  # rows before this one have no room worth looking at
        self.starts: list[int] = []
        self.items = 0

    @property
    def rows(self) -> int:
        """Rows in use."""
        return len(self._free)

    @property
    def full(self) -> bool:
        """True when nothing more fits for certain."""
        return self.items >= self._max_items or (len(self._free) >= self._max_rows and self._open >= len(self._free))

    def place(self, tokens: int) -> bool:
        """Find room for a text; its first slot is appended to `starts`."""
        if self.items >= self._max_items:
            return False
        if self._layout.segments_per_row is None:
            for row in range(self._open, len(self._free)):
                if self._free[row] >= tokens:
                    self._put(row, tokens)
                    return True
        if len(self._free) >= self._max_rows:
            return False
        self._free.append(self.width)
        self._put(len(self._free) - 1, tokens)
        return True

    def _put(self, row: int, tokens: int) -> None:
        self.starts.append(row * self.width + self.width - self._free[row])
        self._free[row] = 0 if self._layout.segments_per_row is not None else self._free[row] - tokens
        self.items += 1
        while self._open < len(self._free) and self._free[self._open] == 0:
            self._open += 1
