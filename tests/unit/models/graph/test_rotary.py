"""Rotary positions are looked up where the longest text is known, and computed where it is not: the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from infinity_emb.models.graph import rotary
from infinity_emb.models.graph.builder import GraphBuilder
from infinity_emb.models.graph.frequencies import Frequencies, plain

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
