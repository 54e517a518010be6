"""Masks and attention on rows that hold several texts, computed by ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from infinity_emb.models.graph.attention import MASKED, Heads, SegmentAttention, attention_mask, segment_mask

# two rows: texts of 3 and 2 tokens and one padding slot; one text of 6
SEGMENTS = np.array([[1, 1, 1, 2, 2, 0], [3, 3, 3, 3, 3, 3]])
POSITIONS = np.array([[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 4, 5]])


def evaluate(builder, value, **arrays):
    graph = builder.finish({"out": (value, 1)})
    model = onnx.load_model_from_string(graph.with_inputs)
    arrays |= {"segment_ids": SEGMENTS, "position_ids": POSITIONS, "input_ids": SEGMENTS}
    wanted = {each.name for each in model.graph.input}
    return ReferenceEvaluator(model).run(["out"], {name: array for name, array in arrays.items() if name in wanted})[0]


def visible(mask, row, query):
    return np.flatnonzero(mask[row, 0, query] == 0).tolist()


def test_a_token_sees_its_own_text_alone(builder):
    mask = evaluate(builder, segment_mask(builder))
    assert mask.shape == (2, 1, 6, 6)
    assert [visible(mask, 0, query) for query in range(5)] == [[0, 1, 2]] * 3 + [[3, 4]] * 2
    assert set(np.unique(mask)) == {0.0, MASKED}


def test_causal_hides_what_comes_later_in_the_text(builder):
    mask = evaluate(builder, attention_mask(builder, causal=True))
    assert [visible(mask, 0, query) for query in range(5)] == [[0], [0, 1], [0, 1, 2], [3], [3, 4]]


@pytest.mark.parametrize(("causal", "seen"), [(False, [1, 2, 3, 4, 5]), (True, [1, 2, 3])])
def test_reach_counts_tokens_to_each_side(causal, seen, builder):
    mask = evaluate(builder, attention_mask(builder, causal=causal, reach=2))
    assert visible(mask, 1, 3) == seen


def test_padding_slots_see_something_so_that_nothing_becomes_nan(builder):
    mask = evaluate(builder, attention_mask(builder, causal=True, reach=0))
    assert visible(mask, 0, 5) == [5]


def test_shared_key_heads_equal_copied_ones(builder):
    random = np.random.default_rng(0)
    query = random.normal(size=(12, 8)).astype(np.float32)
    key, value = (random.normal(size=(12, 4)).astype(np.float32) for _ in range(2))
    mask = segment_mask(builder)
    names = [builder.constant(each, np.float32) for each in (query, key, value)]
    shared = evaluate(builder, SegmentAttention(builder, Heads(4, 2, shared=2), mask)(*names))
    copies = [each.reshape(12, 2, 2).repeat(2, axis=1).reshape(12, 8) for each in (key, value)]
    names[1:] = [builder.constant(each, np.float32) for each in copies]
    copied = evaluate(builder, SegmentAttention(builder, Heads(4, 2), mask)(*names))
    np.testing.assert_allclose(shared, copied, atol=1e-6)


@pytest.mark.parametrize(("scale", "factor"), [(None, 0.5), (1.0, 1.0), (0.25, 0.25)])
def test_scale_is_that_of_the_head_size_unless_said_otherwise(scale, factor, builder):
    attention = SegmentAttention(builder, Heads(1, 4, scale=scale), segment_mask(builder))
    scaled = attention.scaled(builder.number(2.0))
    assert evaluate(builder, scaled) == 2.0 * factor
