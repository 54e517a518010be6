from __future__ import annotations

import pytest

from infinity_emb.backends.base import Layout
from infinity_emb.errors import BackendError, InvalidInputError
from infinity_emb.scheduler.batcher import AGEING_S, LOOKAHEAD_ITEMS, Batcher
from infinity_emb.types import Priority
from stub_backends import PACKED, PADDED, sized_request


def batcher_with(*requests, layout=PACKED, max_items=32):
    batcher = Batcher(layout, max_items)
    for request in requests:
        batcher.add(request)
    return batcher


def test_nothing_waiting_gives_no_batch():
    assert Batcher(PACKED, 8).next_batch(0.0) is None


def test_an_item_longer_than_every_row_is_refused_before_it_can_block_the_line():
    with pytest.raises(BackendError, match="item 1 has 33 tokens, rows hold 32") as caught:
        Batcher(PACKED, 8).check(sized_request(3, 33))
    assert caught.value.item_index == 1


def test_an_item_without_tokens_is_refused_by_its_number():
    with pytest.raises(InvalidInputError, match="Item 1 has no tokens"):
        Batcher(PACKED, 8).check(sized_request(3, 0))


def test_a_request_without_items_is_a_bug_and_says_so():
    with pytest.raises(BackendError, match="bug"):
        Batcher(PACKED, 8).check(sized_request())


def test_a_single_text_that_is_longer_than_the_budget_gets_a_row_of_its_own():
    layout = Layout(widths=(8, 100), batch_tokens=10)
    batch = batcher_with(sized_request(100, 1), layout=layout).next_batch(0.0)
    assert (batch.rows, batch.width, len(batch.entries)) == (1, 100, 1)


def test_short_texts_share_rows():
    batch = batcher_with(sized_request(*[4] * 16)).next_batch(0.0)
    assert batch.rows * batch.width == batch.tokens == 64


def test_a_padded_batch_leaves_much_shorter_texts_for_later():
    request = sized_request(30, 3, 28, 2, 31)
    batcher = batcher_with(request, layout=PADDED)
    assert [position for _, position in batcher.next_batch(0.0).entries] == [0, 2]
    assert list(request.pending) == [1, 3, 4]


def test_lookahead_ends_and_what_it_passed_over_keeps_its_place():
    misfits = [sized_request(2) for _ in range(LOOKAHEAD_ITEMS + 5)]
    batcher = batcher_with(sized_request(32), *misfits, sized_request(32), layout=PADDED)
    assert len(batcher.next_batch(0.0).entries) == 1
    assert batcher.next_batch(0.0).entries[0][0] is misfits[0]


def test_requests_put_back_stand_where_they_were():
    first, skipped, third = sized_request(30), sized_request(3), sized_request(29)
    batcher = batcher_with(first, skipped, third, layout=PADDED)
    batch = batcher.next_batch(0.0)
    assert [request for request, _ in batch.entries] == [first, third]
    batcher.put_back(batch)
    assert batcher.requests() == [first, skipped, third]


def test_putting_back_drops_requests_that_were_answered_meanwhile():
    kept, gone = sized_request(5), sized_request(6)
    batcher = batcher_with(kept, gone)
    batch = batcher.next_batch(0.0)
    gone.closed = True
    batcher.put_back(batch)
    assert batcher.requests() == [kept]
    assert (batcher.waiting_items, batcher.waiting_tokens) == (1, 5)


def test_removing_a_request_twice_counts_once():
    request = sized_request(5, 5)
    batcher = batcher_with(request, sized_request(7))
    batcher.remove(request)
    batcher.remove(request)
    assert (batcher.waiting_items, batcher.waiting_tokens) == (1, 7)


def test_interactive_goes_before_bulk_until_bulk_has_waited_long_enough():
    bulk = sized_request(*[32] * 4, priority=Priority.BULK)
    batcher = batcher_with(bulk, *(sized_request(32, 32) for _ in range(5)))
    picked = [batcher.next_batch(now_s).priority for now_s in (0.0, 0.1, AGEING_S + 0.1, AGEING_S + 0.2)]
    assert picked == [Priority.INTERACTIVE, Priority.INTERACTIVE, Priority.BULK, Priority.INTERACTIVE]


def test_a_bulk_batch_chosen_ahead_is_traded_for_an_interactive_request():
    batcher = batcher_with(sized_request(*[32] * 4, priority=Priority.BULK))
    batch = batcher.next_batch(0.0)
    assert not batcher.improves(batch)
    batcher.add(sized_request(1))
    assert batcher.improves(batch)


def test_a_bulk_batch_that_is_due_is_not_traded_any_more():
    batcher = batcher_with(sized_request(*[32] * 4, priority=Priority.BULK), sized_request(1), sized_request(1))
    batcher.next_batch(0.0)
    batcher.add(sized_request(1))
    batch = batcher.next_batch(AGEING_S * 2)
    assert batch.due
    assert batch.priority is Priority.BULK
    assert not batcher.improves(batch)


def test_a_batch_with_room_is_traded_when_more_has_come():
    batcher = batcher_with(sized_request(4))
    batch = batcher.next_batch(0.0)
    assert not batch.full
    batcher.add(sized_request(4))
    assert batcher.improves(batch)
    batcher.put_back(batch)
    assert len(batcher.next_batch(0.0).entries) == 2


def test_a_full_batch_stays():
    batcher = batcher_with(sized_request(*[32] * 3))
    batch = batcher.next_batch(0.0)
    assert batch.full
    assert not batcher.improves(batch)
