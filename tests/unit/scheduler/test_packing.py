"""Texts are put into rows first fit, in the order they come."""

from __future__ import annotations

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from infinity_emb.backends.base import Layout
from infinity_emb.scheduler.packing import Packer

COSTS = st.lists(st.integers(1, 40), min_size=1, max_size=40)
MOST_ITEMS = 24
PATIENCE = 3


def first_fit(costs, width, most_rows, room):
    """The definition, plainly: start slots of what is placed, its positions, and what is passed over."""
    used, starts, placed, passed = [], [], [], []
    for position, cost in enumerate(costs):
        full = len(placed) >= room or (len(used) == most_rows and all(row == width for row in used))
        if full or len(passed) > PATIENCE:
            break
        row = next((row for row, filled in enumerate(used) if filled + cost <= width), len(used))
        if row == most_rows or cost > width:
            passed.append(position)
            continue
        if row == len(used):
            used.append(0)
        starts.append(row * width + used[row])
        used[row] += cost
        placed.append(position)
    return starts, placed, passed


@given(COSTS)
def test_texts_go_where_they_first_fit(costs):
    packer = Packer(Layout((16, 32), batch_tokens=96), longest=32, total=sum(costs), max_items=MOST_ITEMS)
    pending = deque(range(len(costs)))
    placed, passed = packer.fill(pending, costs, PATIENCE)
    starts, expected, expected_passed = first_fit(costs, packer.width, 96 // packer.width, MOST_ITEMS)
    assert (packer.starts, placed, passed) == (starts, expected, len(expected_passed))
    assert sorted([*pending, *placed]) == list(range(len(costs)))
    assert list(pending) == sorted(pending)


@given(COSTS, COSTS)
def test_a_second_request_fills_the_gaps_that_the_first_left(first, second):
    packer = Packer(Layout((16, 32), batch_tokens=4096), longest=40, total=4096, max_items=1000)
    together = Packer(Layout((16, 32), batch_tokens=4096), longest=40, total=4096, max_items=1000)
    for costs in (first, second):
        packer.fill(deque(range(len(costs))), costs, 1000)
    both = [*first, *second]
    together.fill(deque(range(len(both))), both, 1000)
    assert packer.starts == together.starts
