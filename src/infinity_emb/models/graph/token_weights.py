"""Weights of words as graph nodes: on every token's state, and their sum over each text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.graph.columns import pad_to_columns

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.spec.token_weights import TokenWeightsSpec


def weigh(builder: GraphBuilder, module: TokenWeightsSpec, hidden: str) -> str:
    """Token states `[slots, width]`, each times the weight of its word."""
    return builder.node("Mul", [hidden, _of_tokens(builder, module)])


def total_weight(builder: GraphBuilder, module: TokenWeightsSpec) -> str:
    """The sum over each segment's tokens: `[segments, 1]`."""
    factors = builder.input("pool_weights")
    return builder.node("MatMul", [factors, pad_to_columns(builder, _of_tokens(builder, module), factors)])


def _of_tokens(builder: GraphBuilder, module: TokenWeightsSpec) -> str:
    """`[slots, 1]`."""
    table = builder.constant(np.array(module.weights)[:, None], np.float32)
    return builder.gather(table, builder.flatten(builder.input("input_ids")))
