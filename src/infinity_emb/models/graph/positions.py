"""Positions where they are no plain count from the start of the text, and the lengths of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder


def counted_positions(builder: GraphBuilder, padding_id: int) -> str:
    """Int64 `[slots]`: padding_id + 1, + 2, … along each text, as transformers' `create_position_ids_from_input_ids`.

    For the families that count from behind the padding index: RoBERTa and its descendants, MPNet.
    A padding token that somebody wrote into a text stays at `padding_id` and is not counted.
    """
    ids, positions = builder.input("input_ids"), builder.input("position_ids")
    is_padding = builder.node("Equal", [ids, builder.ints(padding_id)])
    counted = builder.node("Cast", [builder.node("Not", [is_padding])], to=TensorProto.INT64)
    axis = builder.constant(1, np.int64)  # a scalar, as CumSum wants it
    before = builder.node("CumSum", [counted, axis], exclusive=1)
    # the count restarts with each text: take off what lies before the slot its first token has
    ones = builder.node("Cast", [builder.node("Equal", [ids, ids])], to=TensorProto.INT64)
    slots = builder.node("CumSum", [ones, axis], exclusive=1)
    starts = builder.node("Sub", [slots, positions])
    within = builder.node("Sub", [before, builder.node("GatherElements", [before, starts], axis=1)])
    numbered = builder.node("Mul", [counted, builder.node("Add", [within, builder.ints(1)])])
    return builder.flatten(builder.node("Add", [numbered, builder.ints(padding_id)]))


def text_lengths(builder: GraphBuilder) -> str:
    """Int64 `[rows, width]`: for each token the tokens of its text."""
    segments = builder.input("segment_ids")
    queries = builder.node("Unsqueeze", [segments, builder.ints(2)])
    same = builder.node("Equal", [queries, builder.node("Unsqueeze", [segments, builder.ints(1)])])
    # counted in whole numbers, which no backend computes in 16 bits
    return builder.node("ReduceSum", [builder.node("Cast", [same], to=TensorProto.INT64), builder.ints(2)], keepdims=0)
