"""Hot path. Items picked to be computed together, and where each lies in the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infinity_emb.scheduler.request import Request
    from infinity_emb.types import Priority


class Batch:
    """Entries in the order of the backend's output rows.

    Attributes:
        entries: `(request, position of the item in it)`.
        starts: First slot of each entry in the flattened rows.
        rows: Number of rows.
        width: Token slots a row.
        priority: The most urgent class in it.
        full: True if nothing more would have fitted.
        tokens: Real tokens in it.
    """

    __slots__ = ("entries", "full", "priority", "rows", "starts", "tokens", "width")

    def __init__(
        self,
        entries: list[tuple[Request, int]],
        starts: list[int],
        shape: tuple[int, int],
        priority: Priority,
        *,
        full: bool,
    ) -> None:
        self.entries = entries
        self.starts = starts
        self.rows, self.width = shape
        self.priority = priority
        self.full = full
        self.tokens = sum(request.costs[index] for request, index in entries)

    @property
    def abandoned(self) -> bool:
        """True if nobody waits for any of it."""
        return all(request.closed for request, _ in self.entries)

    def halves(self) -> tuple[Batch, Batch]:
        """Two batches of half the entries each, in fresh rows of the same width (first fit)."""
        middle = len(self.entries) // 2
        return self._part(self.entries[:middle]), self._part(self.entries[middle:])

    def _part(self, entries: list[tuple[Request, int]]) -> Batch:
        free: list[int] = []
        starts: list[int] = []
        one_a_row = len(self.entries) == self.rows
        for request, position in entries:
            cost = request.costs[position]
            row = next((row for row, room in enumerate(free) if room >= cost and not one_a_row), len(free))
            if row == len(free):
                free.append(self.width)
            starts.append(row * self.width + self.width - free[row])
            free[row] -= cost
        return Batch(entries, starts, (len(free), self.width), self.priority, full=True)

    def groups(self) -> Iterator[tuple[Request, list[int], list[int]]]:
        """`(request, positions in the request, rows in the output)`, each request once."""
        found: dict[int, tuple[Request, list[int], list[int]]] = {}
        for row, (request, index) in enumerate(self.entries):
            group = found.get(id(request))
            if group is None:
                found[id(request)] = (request, [index], [row])
            else:
                group[1].append(index)
                group[2].append(row)
        return iter(found.values())
