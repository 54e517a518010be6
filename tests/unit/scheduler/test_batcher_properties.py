"""Whatever happens in whatever order: never over budget, nothing lost or doubled, arrival order, bounded waiting."""

from __future__ import annotations

import math

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from infinity_emb.backends.base import Layout
from infinity_emb.scheduler.batcher import AGEING_S, Batcher
from infinity_emb.types import Priority
from stub_backends import sized_request


@st.composite
def layouts(draw):
    widths = draw(st.lists(st.integers(1, 64), min_size=1, max_size=5, unique=True).map(sorted))
    return Layout(tuple(widths), draw(st.integers(1, 300)), draw(st.sampled_from([None, 1])))


def check_geometry(batch, layout, max_items):
    """Inside its row, no overlap, within the budget; padded batches hold texts of about one length."""
    assert 1 <= len(batch.entries) == len(batch.starts) <= max_items
    assert batch.width in layout.widths
    assert batch.rows == 1 or batch.rows * batch.width <= layout.batch_tokens
    costs = [request.costs[position] for request, position in batch.entries]
    taken: set[int] = set()
    for cost, start in zip(costs, batch.starts, strict=True):
        slots = set(range(start, start + cost))
        assert start >= 0
        assert start + cost <= batch.rows * batch.width
        assert start // batch.width == (start + cost - 1) // batch.width
        assert not slots & taken
        taken |= slots
    assert {start // batch.width for start in batch.starts} == set(range(batch.rows))
    assert batch.tokens == sum(costs)
    if layout.segments_per_row is not None:
        assert [start % batch.width for start in batch.starts] == [0] * batch.rows
        assert len(batch.entries) == batch.rows
        assert all(cost >= batch.width // 2 for cost in costs[1:])


class AnyOrder(RuleBasedStateMachine):
    """Requests come, batches go, come back, are done; callers give up."""

    requests = Bundle("requests")
    batches = Bundle("batches")

    @initialize(layout=layouts(), max_items=st.integers(1, 20))
    def begin(self, layout, max_items):
        self.layout, self.max_items = layout, max_items
        self.batcher = Batcher(layout, max_items)
        self.now_s = 0.0
        self.waiting = {}  # request → positions that wait
        self.out = set()  # (request, position) in a batch

    @rule(target=requests, data=st.data(), priority=st.sampled_from(Priority))
    def add(self, data, priority):
        costs = data.draw(st.lists(st.integers(1, self.layout.widths[-1]), min_size=1, max_size=40))
        request = sized_request(*costs, priority=priority, arrived_s=self.now_s)
        self.batcher.check(request)
        self.batcher.add(request)
        self.waiting[request] = set(range(len(costs)))
        return request

    @rule(seconds=st.sampled_from([0.0, 0.01, AGEING_S, 2.0]))
    def time_passes(self, seconds):
        self.now_s += seconds

    @rule(target=batches)
    def pick(self):
        batch = self.batcher.next_batch(self.now_s)
        assume(batch is not None)
        check_geometry(batch, self.layout, self.max_items)
        assert {request.priority for request, _ in batch.entries} == {batch.priority}
        order = [(request.number, position) for request, position in batch.entries]
        assert order == sorted(set(order))
        line = [request for request, left in self.waiting.items() if left and request.priority is batch.priority]
        head = min(line, key=lambda request: request.number)
        assert batch.entries[0] == (head, min(self.waiting[head]))
        for request, position in batch.entries:
            self.waiting[request].remove(position)  # KeyError: handed out twice
            self.out.add((request, position))
        return batch

    @rule()
    def an_empty_line_gives_nothing_and_a_full_one_something(self):
        if not any(self.waiting.values()):
            assert self.batcher.next_batch(self.now_s) is None

    @rule(batch=consumes(batches))
    def put_back(self, batch):
        self.batcher.put_back(batch)
        for entry in batch.entries:
            self.out.remove(entry)
            if not entry[0].closed:
                self.waiting[entry[0]].add(entry[1])

    @rule(batch=consumes(batches))
    def done(self, batch):
        self.out -= set(batch.entries)

    @rule(batch=batches)
    def halves_hold_the_same_items_in_no_more_rows(self, batch):
        if len(batch.entries) < 2:
            return
        halves = batch.halves()
        assert [entry for half in halves for entry in half.entries] == batch.entries
        for half in halves:
            check_geometry(half, self.layout, self.max_items)
            assert half.rows <= batch.rows
            assert half.width == batch.width

    @rule(request=requests)
    def give_up(self, request):
        request.closed = True
        self.batcher.remove(request)
        self.waiting[request] = set()

    @invariant()
    def counters_are_exact(self):
        if not hasattr(self, "batcher"):
            return
        left = {request: positions for request, positions in self.waiting.items() if positions}
        assert self.batcher.waiting_items == sum(map(len, left.values()))
        assert self.batcher.waiting_tokens == sum(r.costs[p] for r, positions in left.items() for p in positions)
        assert self.batcher.waiting_requests == len(left)
        for request, positions in left.items():
            assert list(request.pending) == sorted(positions)
            assert request.waiting_tokens == sum(request.costs[position] for position in positions)
        for priority in Priority:
            line = [request for request in self.batcher.requests() if request.priority is priority]
            assert [request.number for request in line] == sorted(r.number for r in left if r.priority is priority)
        arrivals = [request.arrived_s for request in left]
        assert self.batcher.oldest_arrival_s() == min(arrivals, default=None)

    def teardown(self):
        """What is left comes out completely, in as many batches as there are items at most."""
        if not hasattr(self, "batcher"):
            return
        for _ in range(sum(map(len, self.waiting.values()))):
            batch = self.batcher.next_batch(self.now_s)
            if batch is None:
                break
            for request, position in batch.entries:
                self.waiting[request].remove(position)
        assert not any(self.waiting.values())


AnyOrder.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase


@given(
    layout=layouts(),
    bulk_costs=st.lists(st.integers(1, 64), min_size=1, max_size=10),
    batch_s=st.sampled_from([0.05, 0.2, 0.6, 3.0]),
    prefetch=st.booleans(),
    flood=st.booleans(),
)
@settings(deadline=None)
def test_bulk_is_done_in_a_bounded_number_of_batches_under_endless_interactive_requests(
    layout, bulk_costs, batch_s, prefetch, flood
):
    widest = layout.widths[-1]
    batcher = Batcher(layout, 8)
    bulk = sized_request(*(min(cost, widest) for cost in bulk_costs), priority=Priority.BULK)
    batcher.add(bulk)
    urgent = [widest] * 8 if flood else [1]  # more than is ever done, or just one for each batch
    between_turns = math.ceil(AGEING_S / batch_s) + 2
    now_s = 0.0
    batches = 0
    while batches < 1000:
        batches += 1
        if not prefetch:
            batcher.add(sized_request(*urgent, arrived_s=now_s))
        batch = batcher.next_batch(now_s)
        # a worker chooses ahead, and chooses again when the device is free
        if prefetch:
            batcher.add(sized_request(*urgent, arrived_s=now_s))
        now_s += batch_s
        if batcher.improves(batch):
            batcher.put_back(batch)
            batch = batcher.next_batch(now_s)
        if not bulk.pending and bulk in {request for request, _ in batch.entries}:
            break
    assert batches <= len(bulk_costs) * between_turns + 1


@given(layout=layouts(), batch_s=st.sampled_from([0.05, 0.6, 3.0]), prefetch=st.booleans())
@settings(deadline=None)
def test_an_interactive_request_waits_for_one_bulk_batch_at_most_however_slow_batches_are(layout, batch_s, prefetch):
    widest = layout.widths[-1]
    batcher = Batcher(layout, 4)
    batcher.add(sized_request(*[widest] * 400, priority=Priority.BULK))
    now_s = 0.0
    for _ in range(5):  # bulk has been passed over and is due
        batcher.add(sized_request(1, arrived_s=now_s))
        batcher.next_batch(now_s)
        now_s += batch_s
    for _ in range(20):
        batcher.add(sized_request(1, arrived_s=now_s))
        chosen = []
        for _ in range(2):
            batch = batcher.next_batch(now_s)
            if prefetch:
                batcher.add(sized_request(1, arrived_s=now_s))
            now_s += batch_s
            if batcher.improves(batch):
                batcher.put_back(batch)
                batch = batcher.next_batch(now_s)
            chosen.append(batch.priority)
        assert Priority.INTERACTIVE in chosen
