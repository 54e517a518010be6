"""Sparse vectors as graph nodes: the codes of a dense vector, and the largest numbers of a vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.heads import apply_all
from infinity_emb.models.graph.tensors import module_tensors

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.spec.codes import CodesSpec
    from infinity_emb.models.spec.model import ModelSpec

STANDARD_EPSILON = 1e-5  # fixed in the reference


def codes_of(builder: GraphBuilder, spec: ModelSpec, codes: CodesSpec, hidden: str) -> dict[str, tuple[str, int]]:
    """Turn token states into the output `codes`: `[segments, codes]`, zeros but for the largest positive ones."""
    vector, width = apply_all(builder, spec, hidden)
    if codes.standardized:
        vector = _standardized(builder, vector, width)
    source = module_tensors(codes.weights)
    centred = builder.node("Sub", [vector, builder.weight("pre_bias", (width,), source)])
    weight = builder.weight("encoder.weight", (spec.dim, width), source)
    bias = builder.weight("latent_bias", (spec.dim,), source)
    every = builder.node("Gemm", [centred, weight, bias], transB=1)
    return {"codes": (builder.activation(keep_largest(builder, every, codes.kept), "relu"), spec.dim)}


def keep_largest(builder: GraphBuilder, value: str, count: int) -> str:
    """The `count` largest numbers of each row in their places, zeros elsewhere."""
    top, places = builder.top(value, count)
    zeros = builder.node("Mul", [value, builder.number(0.0)])
    return builder.node("ScatterElements", [zeros, places, top], axis=-1)


def _standardized(builder: GraphBuilder, vector: str, width: int) -> str:
    """Less the mean, by the deviation of a sample (`n - 1`)."""
    mean = builder.node("ReduceMean", [vector, builder.ints(-1)], keepdims=1)
    centred = builder.node("Sub", [vector, mean])
    squares = builder.node("ReduceSumSquare", [centred, builder.ints(-1)], keepdims=1)
    deviation = builder.node("Sqrt", [builder.node("Div", [squares, builder.number(max(width - 1, 1))])])
    return builder.node("Div", [centred, builder.node("Add", [deviation, builder.number(STANDARD_EPSILON)])])
