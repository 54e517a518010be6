"""A recurrent network along each text, one text a row: LSTM as graph nodes.

The network that reads from the end gets each text turned around and its results turned back, instead of ONNX's own
`bidirectional`: OpenVINO 2026.4 begins that at the end of the row, not of the text. Padding comes behind a text, so a
network that reads forwards never sees it in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.tensors import module_tensors
from infinity_emb.models.spec.recurrent import GATES

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.spec.recurrent import RecurrentSpec


def recur(builder: GraphBuilder, module: RecurrentSpec, hidden: str) -> str:
    """Token states `[slots, in]` → `[slots, out]`."""
    real = builder.node("Greater", [builder.input("segment_ids"), builder.ints(0)])
    counts = builder.node("ReduceSum", [builder.node("Cast", [real], to=7), builder.ints(1)], keepdims=0)
    lengths = builder.node("Max", [counts, builder.ints(1)])
    shape = builder.node("Shape", ["segment_ids"])
    width = module.in_features
    for layer in range(module.layers):
        target = builder.node("Concat", [shape, builder.ints(width)], axis=0)
        rows = builder.node("Reshape", [hidden, target])
        parts = [_one_way(builder, module, layer, rows, "")]
        if module.both_ways:
            turned = _turned(builder, rows, lengths)
            parts.append(_turned(builder, _one_way(builder, module, layer, turned, "_reverse"), lengths))
        joined = builder.node("Concat", parts, axis=-1) if module.both_ways else parts[0]
        width = module.out_features
        hidden = builder.node("Reshape", [joined, builder.ints(-1, width)])
    return hidden


def _turned(builder: GraphBuilder, rows: str, lengths: str) -> str:
    """Each text of `[rows, width, …]` from its end; padding stays in its place."""
    return builder.node("ReverseSequence", [rows, lengths], batch_axis=0, time_axis=1)


def _one_way(builder: GraphBuilder, module: RecurrentSpec, layer: int, rows: str, ending: str) -> str:
    """`[rows, width, in]` → `[rows, width, hidden]`, read from the start."""
    source = module_tensors(module.weights)
    inner, outer, inner_bias, outer_bias = (
        _in_order(builder, builder.weight(name + ending, shape, source), module.hidden)
        for name, shape in module.shapes(layer).items()
    )
    first = builder.ints(0)
    biases = builder.node("Concat", [inner_bias, outer_bias], axis=0)
    inputs = [builder.node("Transpose", [rows], perm=[1, 0, 2])]
    inputs += [builder.node("Unsqueeze", [value, first]) for value in (inner, outer, biases)]
    states = builder.node("LSTM", inputs, hidden_size=module.hidden)  # [width, 1, rows, hidden]
    return builder.node("Transpose", [builder.node("Squeeze", [states, builder.ints(1)])], perm=[1, 0, 2])


def _in_order(builder: GraphBuilder, value: str, hidden: int) -> str:
    """The gates of torch (input, forget, cell, output) in the order of ONNX (input, output, forget, cell)."""
    first, rest = builder.split(value, hidden, (GATES - 1) * hidden, axis=0)
    middle, last = builder.split(rest, (GATES - 2) * hidden, hidden, axis=0)
    return builder.node("Concat", [first, last, middle], axis=0)
