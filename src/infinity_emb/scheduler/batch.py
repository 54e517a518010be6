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
        due: True if it is bulk that has waited long enough: interactive requests may not push it back again.
        before: The batcher's turns before it chose this batch, to undo the choice.
    """

    __slots__ = ("before", "due", "entries", "full", "priority", "rows", "starts", "tokens", "width")

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
        self.due = False
        self.before: tuple[float, bool] | None = None
        self.tokens = sum([request.costs[index] for request, index in entries])

    @property
    def abandoned(self) -> bool:
        """True if nobody waits for any of it."""
        return all(request.closed for request, _ in self.entries)

    def halves(self) -> tuple[Batch, Batch]:
        """Two batches of half the entries each: every item stays in its row, moved up; empty rows are gone."""
        middle = len(self.entries) // 2
        return self._part(slice(middle)), self._part(slice(middle, None))

    def _part(self, part: slice) -> Batch:
        entries = self.entries[part]
        rows: dict[int, int] = {}  # row here → row there
        filled: list[int] = []
        starts: list[int] = []
        for (request, position), start in zip(entries, self.starts[part], strict=True):
            row = rows.setdefault(start // self.width, len(rows))
            if row == len(filled):
                filled.append(0)
            starts.append(row * self.width + filled[row])
            filled[row] += request.costs[position]
        return Batch(entries, starts, (len(filled), self.width), self.priority, full=True)

    def groups(self) -> Iterator[tuple[Request, list[int], list[int]]]:
        """`(request, positions in the request, rows in the output)`, each request once."""
        requests, positions = zip(*self.entries, strict=True)
        if requests.count(requests[0]) == len(requests):  # one request: the usual batch of bulk
            return iter(((requests[0], list(positions), list(range(len(requests)))),))
        found: dict[int, tuple[Request, list[int], list[int]]] = {}
        for row, (request, index) in enumerate(self.entries):
            group = found.get(id(request))
            if group is None:
                found[id(request)] = (request, [index], [row])
            else:
                group[1].append(index)
                group[2].append(row)
        return iter(found.values())
