"""Hot path. Where texts go in the rows of a batch: first fit, in the order they are offered."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    __slots__ = ("_free", "_max_items", "_max_rows", "_open", "_packed", "starts", "width")

    def __init__(self, layout: Layout, longest: int, total: int, max_items: int) -> None:
        self._max_items = max_items
        self._packed = layout.segments_per_row is None
        wanted = max(longest, min(PACKED_ROW_MIN, total)) if self._packed else longest
        self.width = fitting_width(layout, wanted)
        self._max_rows = layout.max_rows or max(1, layout.batch_tokens // self.width)
        self._free: list[int] = []
        self._open = 0  # rows before this one have no room worth looking at
        self.starts: list[int] = []

    @property
    def items(self) -> int:
        """Texts placed."""
        return len(self.starts)

    @property
    def rows(self) -> int:
        """Rows in use."""
        return len(self._free)

    @property
    def full(self) -> bool:
        """True when nothing more fits for certain."""
        return self.items >= self._max_items or (len(self._free) >= self._max_rows and self._open >= len(self._free))

    def place(self, tokens: int) -> bool:
        """Find room for one text; its first slot is appended to `starts`."""
        return bool(self.fill(deque((0,)), (tokens,), 0)[0])

    def fill(self, pending: deque[int], costs: Sequence[int], patience: int) -> tuple[list[int], int]:
        """Find room for texts until the batch is full, or more than `patience` of them found none.

        Where each text has a row of its own, one under half of the rows' width waits for a narrower batch.

        Args:
            pending: Positions in `costs` of the texts that wait, in order; those that are placed are taken out.
            costs: Tokens of the texts.
            patience: How many may be passed over.

        Returns:
            The positions that were placed, in the order of `starts`, and how many were passed over.
        """
        free, starts, width = self._free, self.starts, self.width
        first = looked = self._open
        most_rows, room = self._max_rows, self._max_items - len(starts)
        least = min(costs)
        shortest = 0 if self._packed else width // 2
        placed: list[int] = []
        passed: list[int] = []
        while pending and room and len(passed) <= patience and (first < len(free) or len(free) < most_rows):
            position = pending.popleft()
            cost = costs[position]
            while looked < len(free) and free[looked] < least:
                looked += 1
            row = looked
            while row < len(free) and free[row] < cost:
                row += 1
            if row == len(free):
                if row == most_rows or cost > width or (starts and cost < shortest):
                    passed.append(position)
                    continue
                free.append(width)
            starts.append((row + 1) * width - free[row])
            free[row] = free[row] - cost if self._packed else 0
            while first < len(free) and not free[first]:
                first += 1
            room -= 1
            placed.append(position)
        self._open = first
        pending.extendleft(reversed(passed))
        return placed, len(passed)
