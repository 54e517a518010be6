"""Rotary positions are looked up where the longest text is known, and computed where it is not: the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from infinity_emb.errors import NotComputedError
from infinity_emb.models.graph import rotary
from infinity_emb.models.graph.builder import GraphBuilder
from infinity_emb.models.graph.frequencies import Frequencies, Longer, plain

POSITIONS = np.array([[0, 1, 2, 0], [5, 6, 7, 8]])
VALUES = np.random.default_rng(0).normal(size=(2, 4, 3, 8)).astype(np.float32)


def turned(pairs, longest, scale=1.0):
    builder = GraphBuilder(None, longest=longest)
    turn = rotary.Rotary(builder, Frequencies(plain(100.0, 2 * pairs), scale), VALUES.shape[-1])
    graph = builder.finish({"out": (turn(builder.constant(VALUES, np.float32)), 1)})
    model = onnx.load_model_from_string(graph.with_inputs)
    return ReferenceEvaluator(model).run(["out"], {"position_ids": POSITIONS})[0], graph


@pytest.mark.parametrize("longest", [0, 9])
@pytest.mark.parametrize("pairs", [4, 2])
@pytest.mark.parametrize("scale", [1.0, 1.25])
def test_pairs_turn_as_complex_numbers_and_the_rest_stays(scale, pairs, longest):
    values, _ = turned(pairs, longest, scale)
    first, second = VALUES[..., :pairs], VALUES[..., pairs : 2 * pairs]
    angles = POSITIONS[:, :, None, None] * 100.0 ** (-np.arange(pairs) / pairs)
    wanted = (first + 1j * second) * np.exp(1j * angles) * scale
    np.testing.assert_allclose(values[..., :pairs], wanted.real, atol=1e-6)
    np.testing.assert_allclose(values[..., pairs : 2 * pairs], wanted.imag, atol=1e-6)
    np.testing.assert_array_equal(values[..., 2 * pairs :], VALUES[..., 2 * pairs :])


def operators(graph):
    return {node.op_type for node in onnx.load_model_from_string(graph.with_inputs).graph.node}


def test_a_table_needs_no_arithmetic_that_sixteen_bits_would_spoil(monkeypatch):
    assert not operators(turned(4, 9)[1]) & {"Cos", "Sin"}
    monkeypatch.setattr(rotary, "TABLE_NUMBERS", 8)
    assert {"Cos", "Sin"} <= operators(turned(4, 9)[1])


SEGMENTS = np.array([[1, 1, 1, 2, 0], [3, 3, 3, 3, 3]])
PLACES = np.array([[0, 1, 2, 0, 0], [0, 1, 2, 3, 4]])


def by_length(steady, longest):
    """Values of three texts of 3, 1 and 5 tokens, of which those beyond 2 tokens turn otherwise."""
    longer = Longer(2, lambda tokens: plain(7.0 if steady else 100.0 * tokens, 8), steady=steady)
    builder = GraphBuilder(None, longest=longest)
    values = np.random.default_rng(1).normal(size=(2, 5, 1, 8)).astype(np.float32)
    turn = rotary.Rotary(builder, Frequencies(plain(100.0, 8), 1.5, longer), 8)
    graph = builder.finish({"out": (turn(builder.constant(values, np.float32)), 1)})
    inputs = {"position_ids": PLACES, "segment_ids": SEGMENTS}
    model = onnx.load_model_from_string(graph.with_inputs)
    return values, ReferenceEvaluator(model).run(["out"], {name: inputs[name] for name in graph.inputs})[0], graph


@pytest.mark.parametrize("most", [1 << 22, 50, 20], ids=["tables", "no room for both sets", "no table"])
@pytest.mark.parametrize("steady", [True, False])
def test_each_text_of_a_row_turns_by_its_own_length(steady, most, monkeypatch):
    monkeypatch.setattr(rotary, "TABLE_NUMBERS", most)
    values, found, _ = by_length(steady, 7)
    for row, column in zip(*np.nonzero(SEGMENTS), strict=True):
        tokens = int((SEGMENTS[row] == SEGMENTS[row, column]).sum())
        base = 100.0 if tokens <= 2 else 7.0 if steady else 100.0 * tokens
        value, angles = values[row, column, 0], PLACES[row, column] * plain(base, 8)
        wanted = (value[:4] + 1j * value[4:]) * np.exp(1j * angles) * 1.5
        np.testing.assert_allclose(found[row, column, 0], [*wanted.real, *wanted.imag], atol=1e-6)


def test_where_no_text_is_long_nothing_depends_on_lengths():
    builder = GraphBuilder(None, longest=2)
    rotary.Rotary(builder, Frequencies(plain(100.0, 8), 1.0, Longer(2, lambda _: plain(7.0, 8), steady=True)), 8)
    assert builder.finish({}).inputs == ("position_ids",)


@pytest.mark.parametrize("longest", [0, 9])
def test_more_lengths_than_a_table_holds_are_refused(longest, monkeypatch):
    monkeypatch.setattr(rotary, "TABLE_NUMBERS", 20)
    with pytest.raises(NotComputedError, match="every length beyond 2 tokens"):
        by_length(steady=False, longest=longest)
