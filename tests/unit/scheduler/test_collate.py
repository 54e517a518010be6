from __future__ import annotations

import numpy as np
import pytest

from infinity_emb.backends.base import Layout
from infinity_emb.models.features import Features
from infinity_emb.scheduler.batcher import Batcher
from infinity_emb.scheduler.collate import Collator, pooled_columns
from infinity_emb.scheduler.request import Request
from infinity_emb.types import Priority
from stub_backends import CountingFuture, request_of

NAMES = (
    "input_ids",
    "segment_ids",
    "position_ids",
    "token_type_ids",
    "pool_weights",
    "position_weights",
    "first_index",
    "last_index",
    "token_index",
)
LAYOUT = Layout(widths=(8,), batch_tokens=16, segment_steps=(1, 4))


def collated(request, names=NAMES, layout=LAYOUT):
    batcher = Batcher(layout, 32)
    batcher.add(request)
    batch = batcher.next_batch(0.0)
    return Collator(names, layout)(batch)


def test_several_texts_share_a_row_and_padding_comes_last():
    arrays = collated(request_of([5, 6, 7], [8, 9], [1, 2, 3, 4]))
    assert arrays["input_ids"].tolist() == [[5, 6, 7, 8, 9, 0, 0, 0], [1, 2, 3, 4, 0, 0, 0, 0]]
    assert arrays["segment_ids"].tolist() == [[1, 1, 1, 2, 2, 0, 0, 0], [3, 3, 3, 3, 0, 0, 0, 0]]
    assert arrays["position_ids"].tolist() == [[0, 1, 2, 0, 1, 0, 0, 0], [0, 1, 2, 3, 0, 0, 0, 0]]
    assert not arrays["token_type_ids"].any()


def test_every_token_of_a_text_has_its_adapter_and_padding_has_none():
    request = request_of([5, 6, 7], [8, 9], [1, 2, 3, 4])
    request.items[0].adapter, request.items[2].adapter = 2, 5
    arrays = collated(request, ("adapter_ids",))
    assert arrays["adapter_ids"].tolist() == [[2, 2, 2, 0, 0, 0, 0, 0], [5, 5, 5, 5, 0, 0, 0, 0]]


def test_the_number_of_segments_is_padded_up_to_a_step():
    arrays = collated(request_of([5, 6, 7], [8, 9], [1, 2, 3, 4]))
    assert arrays["first_index"].tolist() == [0, 3, 8, 0]
    assert arrays["last_index"].tolist() == [2, 4, 11, 0]
    assert arrays["token_index"].tolist() == [[0, 1, 2, 2], [3, 4, 4, 4], [8, 9, 10, 11], [0, 0, 0, 0]]
    assert arrays["pool_weights"].shape == (4, 64)
    assert not arrays["pool_weights"][3].any()


def test_more_segments_than_the_last_step_are_not_padded():
    assert collated(request_of(*[[1]] * 5))["first_index"].shape == (5,)


def test_weights_mark_the_tokens_of_their_own_text():
    arrays = collated(request_of([5, 6, 7], [8, 9]))
    assert arrays["pool_weights"][:2, :8].tolist() == [[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0]]
    assert arrays["position_weights"][:2, :8].tolist() == [[1, 2, 3, 0, 0, 0, 0, 0], [0, 0, 0, 1, 2, 0, 0, 0]]


@pytest.mark.parametrize(("slots", "columns"), [(1, 64), (64, 64), (65, 128), (512, 512), (520, 1024)])
def test_batches_of_many_sizes_are_pooled_by_weights_of_few(slots, columns):
    assert pooled_columns(slots) == columns


def test_columns_beyond_the_slots_weigh_nothing():
    arrays = collated(request_of([5, 6, 7], [8, 9]))
    assert arrays["pool_weights"].shape == arrays["position_weights"].shape == (4, 64)
    assert not arrays["pool_weights"][:, 8:].any()
    assert not arrays["position_weights"][:, 8:].any()


def test_tokens_of_a_prompt_that_pooling_leaves_out_weigh_nothing():
    items = [Features(np.array([5, 6, 7]), prompt_tokens=2), Features(np.array([8, 9]))]
    request = Request(items, CountingFuture(), None, Priority.INTERACTIVE)
    arrays = collated(request)
    assert arrays["pool_weights"][:2, :8].tolist() == [[0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 0, 0, 0]]
    assert arrays["position_weights"][0, :8].tolist() == [0, 0, 3, 0, 0, 0, 0, 0]
    assert arrays["first_index"].tolist()[:2] == [2, 3]
    assert arrays["token_index"].tolist()[:2] == [[2, 2], [3, 4]]


def test_a_text_of_nothing_but_its_prompt_is_pooled_as_a_whole():
    items = [Features(np.array([5, 6]), prompt_tokens=2), Features(np.array([8, 9, 7]), prompt_tokens=1)]
    arrays = collated(Request(items, CountingFuture(), None, Priority.INTERACTIVE))
    assert arrays["first_index"].tolist()[:2] == [0, 3]
    assert arrays["token_index"].tolist()[:2] == [[0, 1], [3, 4]]


def test_token_types_of_pairs_and_plain_texts_mix():
    items = [Features(np.array([5, 6, 7]), type_ids=np.array([0, 0, 1])), Features(np.array([8, 9]))]
    arrays = collated(Request(items, CountingFuture(), None, Priority.INTERACTIVE))
    assert arrays["token_type_ids"].tolist() == [[0, 0, 1, 0, 0, 0, 0, 0]]


def test_only_what_the_backend_asks_for_is_made_with_the_types_of_the_contract():
    arrays = collated(request_of([5]), ("input_ids", "pool_weights"))
    assert {name: array.dtype for name, array in arrays.items()} == {
        "input_ids": np.int64,
        "pool_weights": np.float32,
    }
