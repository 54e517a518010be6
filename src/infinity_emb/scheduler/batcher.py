"""Hot path. Which items go next: pure policy, without thread, lock or clock.

Interactive requests (small ones) go before bulk, arrival order inside a class. Bulk whose oldest request has waited
longer than `AGEING_S` takes its turn first, so nobody starves. A batch holds as much as the backend's layout says is
worth computing at once and no more: bulk never makes an interactive batch longer.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from infinity_emb.scheduler.batch import Batch
from infinity_emb.scheduler.packing import Packer, fitting_width
from infinity_emb.types import Priority

if TYPE_CHECKING:
    from infinity_emb.backends.base import Layout
    from infinity_emb.scheduler.request import Request

AGEING_S = 0.5
# Items looked at beyond those that fit, in search of one for a gap.
LOOKAHEAD_ITEMS = 32


class Batcher:
    """The waiting line of one model.

    Args:
        layout: How the backend wants batches.
        max_items: Most items in one batch.
    """

    def __init__(self, layout: Layout, max_items: int) -> None:
        self._layout = layout
        self._max_items = max_items
        self._lines: dict[Priority, OrderedDict[Request, None]] = {
            Priority.INTERACTIVE: OrderedDict(),
            Priority.BULK: OrderedDict(),
        }
        self._bulk_served_s = float("-inf")
        self.waiting_tokens = 0
        self.waiting_items = 0

    @property
    def waiting_requests(self) -> int:
        """Requests with at least one item not yet picked."""
        return sum(len(line) for line in self._lines.values())

    def oldest_arrival_s(self) -> float | None:
        """Arrival of the request that has waited longest."""
        heads = [next(iter(line)).arrived_s for line in self._lines.values() if line]
        return min(heads, default=None)

    def requests(self) -> list[Request]:
        """Everything that waits, most urgent class first."""
        return [request for line in self._lines.values() for request in line]

    def add(self, request: Request) -> None:
        """Put a request at the end of its line."""
        self._lines[request.priority][request] = None
        self.waiting_tokens += request.waiting_tokens
        self.waiting_items += len(request.pending)

    def remove(self, request: Request) -> None:
        """Take out whatever of a request still waits."""
        if self._lines[request.priority].pop(request, self) is self:
            return
        self.waiting_tokens -= request.waiting_tokens
        self.waiting_items -= len(request.pending)
        request.pending.clear()
        request.waiting_tokens = 0

    def put_back(self, batch: Batch) -> None:
        """Undo `next_batch`: its items wait again, ahead of everyone in their class."""
        for request, positions, _ in reversed(list(batch.groups())):
            if request.closed:
                continue
            request.pending.extend(positions)
            ordered = sorted(request.pending)
            request.pending.clear()
            request.pending.extend(ordered)
            tokens = sum(request.costs[position] for position in positions)
            request.waiting_tokens += tokens
            self.waiting_tokens += tokens
            self.waiting_items += len(positions)
            line = self._lines[request.priority]
            line[request] = None
            line.move_to_end(request, last=False)

    def improves(self, batch: Batch) -> bool:
        """Whether choosing again now would beat a batch chosen earlier and not yet started."""
        if batch.priority is Priority.BULK and self._lines[Priority.INTERACTIVE]:
            return True
        return not batch.full and bool(self._lines[batch.priority])

    def next_batch(self, now_s: float) -> Batch | None:
        """Pick what to compute next; None if nothing waits."""
        line = self._choose_line(now_s)
        if line is None:
            return None
        longest, total = self._survey(line)
        packer = Packer(self._layout, longest, total, self._max_items)
        entries: list[tuple[Request, int]] = []
        skipped = 0
        emptied = []
        for request in line:
            skipped += self._fill(request, packer, entries)
            if not request.pending:
                emptied.append(request)
            if packer.full or skipped > LOOKAHEAD_ITEMS:
                break
        for request in emptied:
            del line[request]
        priority = entries[0][0].priority
        if priority is Priority.BULK:
            self._bulk_served_s = now_s
        left_over = skipped > 0 or packer.full
        return Batch(entries, packer.starts, (packer.rows, packer.width), priority, full=left_over)

    def _choose_line(self, now_s: float) -> OrderedDict[Request, None] | None:
        interactive, bulk = self._lines[Priority.INTERACTIVE], self._lines[Priority.BULK]
        if interactive and bulk:
            waited_s = now_s - max(next(iter(bulk)).arrived_s, self._bulk_served_s)
            return bulk if waited_s > AGEING_S else interactive
        return interactive or bulk or None

    def _survey(self, line: OrderedDict[Request, None]) -> tuple[int, int]:
        """Longest text and total tokens among those that would fill a batch."""
        longest = total = items = 0
        head = 0
        for request in line:
            for position in request.pending:
                cost = request.costs[position]
                if not head:
                    head = cost
                    if self._layout.segments_per_row is not None:
                        return fitting_width(self._layout, head), head  # longer ones wait for a batch of their own
                longest = max(longest, cost)
                total += cost
                items += 1
                if total >= self._layout.batch_tokens or items >= self._max_items:
                    return longest, total
        return longest, total

    def _fill(self, request: Request, packer: Packer, entries: list[tuple[Request, int]]) -> int:
        """Move items of one request into the batch; returns how many were passed over."""
        passed: list[int] = []
        pending = request.pending
        narrow = packer.width // 2 if self._layout.segments_per_row is not None else 0
        while pending and not packer.full and len(passed) <= LOOKAHEAD_ITEMS:
            position = pending.popleft()
            cost = request.costs[position]
            if narrow * packer.items <= cost * packer.items and cost <= packer.width and packer.place(cost):
                entries.append((request, position))
                request.waiting_tokens -= cost
                self.waiting_tokens -= cost
                self.waiting_items -= 1
            else:
                passed.append(position)
        pending.extendleft(reversed(passed))
        return len(passed)
