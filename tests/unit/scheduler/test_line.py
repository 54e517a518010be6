from __future__ import annotations

import pytest

from infinity_emb.scheduler.batcher import Batcher
from infinity_emb.scheduler.line import Line
from infinity_emb.types import Priority
from stub_backends import PACKED, sized_request

NOW_S = 1.0


def owned(owner, *costs):
    request = sized_request(*costs, priority=Priority.BULK)
    request.owner = owner
    return request


@pytest.fixture
def batcher():
    return Batcher(PACKED, 32)


def served(batcher, batches):
    """Tokens that each owner gets in so many batches."""
    tokens = {}
    for _ in range(batches):
        for request, position in batcher.next_batch(NOW_S).entries:
            tokens[request.owner] = tokens.get(request.owner, 0) + request.costs[position]
    return tokens


def test_an_owner_with_much_to_compute_does_not_hold_up_another(batcher):
    for _ in range(50):
        batcher.add(owned(b"heavy", 32, 32))
    served(batcher, 5)
    batcher.add(owned(b"light", 32))
    assert served(batcher, 1)[b"light"] == 32


def test_owners_who_always_wait_get_equal_shares(batcher):
    for _ in range(60):
        batcher.add(owned(b"large", *[16] * 16))
    for _ in range(600):
        batcher.add(owned(b"small", 16))
    shares = served(batcher, 40)
    assert abs(shares[b"large"] - shares[b"small"]) <= 16 * 16


def test_one_request_of_many_items_is_no_way_around_the_share(batcher):
    batcher.add(owned(b"large", *[32] * 500))
    served(batcher, 3)
    batcher.add(owned(b"small", 32))
    assert b"small" in served(batcher, 2)


def test_time_spent_idle_gives_no_claim(batcher):
    for _ in range(40):
        batcher.add(owned(b"early", 32, 32))
    served(batcher, 20)
    for _ in range(40):
        batcher.add(owned(b"late", 32, 32))
    shares = served(batcher, 20)
    assert abs(shares[b"late"] - shares[b"early"]) <= 128


def test_without_owners_it_is_arrival_order():
    line = Line()
    requests = [owned(None, cost) for cost in (5, 1, 9, 2)]
    for request in requests:
        line.add(request)
    assert list(line) == requests


def test_what_is_put_back_has_its_turn_again(batcher):
    first, second = owned(b"a", 32, 32), owned(b"b", 32, 32)
    batcher.add(first)
    batcher.add(second)
    before = [(request, request.turn) for request in batcher.requests()]
    batch = batcher.next_batch(NOW_S)
    batcher.put_back(batch)
    assert [(request, request.turn) for request in batcher.requests()] == before


def test_what_was_given_up_is_not_held_against_its_owner(batcher):
    given_up = owned(b"a", *[32] * 100)
    batcher.add(given_up)
    batcher.add(owned(b"b", *[32] * 10))
    batcher.remove(given_up)
    batcher.add(owned(b"a", 32))
    assert b"a" in served(batcher, 2)


def test_owners_who_are_gone_are_forgotten():
    line = Line()
    for number in range(1000):
        request = owned(b"%d" % number, 3)
        line.add(request)
        line.serve(request, 3)
        line.remove(request)
    assert len(line._asked) <= 2
