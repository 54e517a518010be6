"""Hot path. Which items go next: pure policy, without thread, lock or clock.

Interactive requests (small ones) go before bulk; inside a class it is arrival order, shared fairly among owners (see
`line`). Bulk that was passed over and has waited longer than `AGEING_S` takes one turn first, so nobody starves: at
worst the classes alternate. A batch holds as much as the backend's layout says is worth computing at once and no more:
bulk never makes an interactive batch longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import BackendError, InvalidInputError
from infinity_emb.scheduler.batch import Batch
from infinity_emb.scheduler.line import Line
from infinity_emb.scheduler.memory import smaller_layout
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
        self._lines = (Line(), Line())  # by priority
        self._bulk_turn_s = float("-inf")
        self._bulk_passed_over = False
        self._admitted = 0
        self.waiting_tokens = 0
        self.waiting_items = 0

    @property
    def waiting_requests(self) -> int:
        """Requests with at least one item not yet picked."""
        return sum(len(line) for line in self._lines)

    def oldest_arrival_s(self) -> float | None:
        """Arrival of the request that has waited longest."""
        oldest_s = [line.oldest_arrival_s() for line in self._lines]
        return min((arrived_s for arrived_s in oldest_s if arrived_s is not None), default=None)

    def requests(self) -> list[Request]:
        """Everything that waits, most urgent class first."""
        return [request for line in self._lines for request in line]

    def check(self, request: Request) -> None:
        """Raise unless every item fits into a row.

        Raises:
            InvalidInputError: An item has no tokens at all (an empty text, for a model without special tokens).
            BackendError: A bug: no items, or one that should have been truncated.
        """
        widest = self._layout.widths[-1]
        if not request.costs:
            raise BackendError("a request without items reached the waiting line; this is a bug.")
        if min(request.costs) < 1:
            position = request.costs.index(0)
            raise InvalidInputError(f"Item {position} has no tokens in this model's vocabulary; send some text.")
        if max(request.costs) > widest:
            position = next(index for index, cost in enumerate(request.costs) if cost > widest)
            raise BackendError(
                f"item {position} has {request.costs[position]} tokens, rows hold {widest}; this is a bug.",
                item_index=position,
            )

    def add(self, request: Request) -> None:
        """Put a request that passed `check` at the end of its line."""
        self._admitted += 1
        request.number = self._admitted
        self._lines[request.priority].add(request)
        self.waiting_tokens += request.waiting_tokens
        self.waiting_items += len(request.pending)

    def remove(self, request: Request) -> None:
        """Take out whatever of a request still waits."""
        if not self._lines[request.priority].remove(request):
            return
        self.waiting_tokens -= request.waiting_tokens
        self.waiting_items -= len(request.pending)
        request.pending.clear()
        request.waiting_tokens = 0

    def put_back(self, batch: Batch) -> None:
        """Undo `next_batch`: its items wait again, each where it was. Those of closed requests are dropped."""
        line = self._lines[batch.priority]
        returned: list[tuple[Request, int]] = []
        for request, positions, _ in batch.groups():
            if request.closed:
                continue
            ordered = sorted([*request.pending, *positions])
            request.pending.clear()
            request.pending.extend(ordered)
            tokens = sum(request.costs[position] for position in positions)
            returned.append((request, tokens))
            request.waiting_tokens += tokens
            self.waiting_tokens += tokens
            self.waiting_items += len(positions)
        line.put_back(returned)
        if returned and batch.before is not None:
            turn_s, self._bulk_passed_over = batch.before
            self._bulk_turn_s = min(self._bulk_turn_s, turn_s)

    def improves(self, batch: Batch) -> bool:
        """Whether choosing again now would beat a batch chosen earlier and not yet started."""
        if batch.priority is Priority.BULK and self._lines[Priority.INTERACTIVE] and not batch.due:
            return True
        return not batch.full and bool(self._lines[batch.priority])

    def shrink(self, slots: int) -> int:
        """A batch of so many token slots did not fit into memory: make smaller ones; returns the new budget."""
        self._layout = smaller_layout(self._layout, slots)
        return self._layout.batch_tokens

    def next_batch(self, now_s: float) -> Batch | None:
        """Pick what to compute next; None if nothing waits."""
        due = self._bulk_is_due(now_s)
        interactive, bulk = self._lines[Priority.INTERACTIVE], self._lines[Priority.BULK]
        line = bulk if bulk and (due or not interactive) else interactive
        if not line:
            return None
        longest, total = self._survey(line)
        packer = Packer(self._layout, longest, total, self._max_items)
        entries: list[tuple[Request, int]] = []
        skipped = 0
        touched = []
        for request in line:
            before = request.waiting_tokens
            skipped += self._fill(request, packer, entries)
            touched.append((request, before - request.waiting_tokens))
            if packer.full or skipped > LOOKAHEAD_ITEMS:
                break
        for request, tokens in touched:
            line.serve(request, tokens)
            if not request.pending:
                line.remove(request)
        priority = entries[0][0].priority
        left_over = skipped > 0 or packer.full
        batch = Batch(entries, packer.starts, (packer.rows, packer.width), priority, full=left_over)
        batch.before = self._bulk_turn_s, self._bulk_passed_over
        if priority is Priority.BULK:
            batch.due = due
            self._bulk_turn_s, self._bulk_passed_over = now_s, False
        else:
            self._bulk_passed_over = bool(bulk)
        return batch

    def _bulk_is_due(self, now_s: float) -> bool:
        """Whether bulk was passed over since its last turn and has waited too long since then."""
        oldest_s = self._lines[Priority.BULK].oldest_arrival_s()
        if oldest_s is None or not self._bulk_passed_over:
            return False
        return now_s - max(oldest_s, self._bulk_turn_s) > AGEING_S

    def _survey(self, line: Line) -> tuple[int, int]:
        """Longest text and total tokens among those that would fill a batch."""
        longest = total = items = 0
        most_tokens, most_items = self._layout.batch_tokens, self._max_items
        for request in line:
            costs = request.costs
            if len(request.pending) < len(costs):
                costs = [costs[position] for position in request.pending]
            if self._layout.segments_per_row is not None:
                return fitting_width(self._layout, costs[0]), costs[0]  # longer ones wait for a batch of their own
            if total + request.waiting_tokens - costs[-1] < most_tokens and items + len(costs) <= most_items:
                longest = max(longest, *costs)
                total += request.waiting_tokens
                items += len(costs)
                if total >= most_tokens or items >= most_items:
                    return longest, total
                continue
            for cost in costs:
                longest = max(longest, cost)
                total += cost
                items += 1
                if total >= most_tokens or items >= most_items:
                    return longest, total
        return longest, total

    def _fill(self, request: Request, packer: Packer, entries: list[tuple[Request, int]]) -> int:
        """Move items of one request into the batch; returns how many were passed over."""
        placed, passed = packer.fill(request.pending, request.costs, LOOKAHEAD_ITEMS)
        costs = request.costs
        tokens = sum([costs[position] for position in placed]) if request.pending else request.waiting_tokens
        entries += [(request, position) for position in placed]
        request.waiting_tokens -= tokens
        self.waiting_tokens -= tokens
        self.waiting_items -= len(placed)
        return passed
