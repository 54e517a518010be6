"""A convolution along each text of a packed row; neither a neighbour in the row nor padding reaches into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder


def convolve(builder: GraphBuilder, hidden: str, name: str, kernel: int) -> str:
    """`torch.nn.Conv1d` with zeros beyond both ends of a text: `[slots, in]` → `[slots, out]`.

    Args:
        builder: Of the graph.
        hidden: Token states.
        name: Of the weight `[out, in, kernel]` and the bias.
        kernel: Odd number of tokens that one result sees.
    """
    taps = [_shifted(builder, hidden, offset) for offset in range(-(kernel // 2), kernel // 2 + 1)]
    weight = builder.node("Transpose", [builder.weight(f"{name}.weight")], perm=[2, 1, 0])
    parts = [
        builder.node("MatMul", [tap, builder.gather(weight, builder.constant(number, np.int64))])
        for number, tap in enumerate(taps)
    ]
    return builder.add(*parts, builder.weight(f"{name}.bias"))


def _shifted(builder: GraphBuilder, hidden: str, offset: int) -> str:
    """The state `offset` tokens further on in the same text, zeros where there is none."""
    if offset == 0:
        return hidden
    segments = builder.flatten(builder.input("segment_ids"))
    zero, one = builder.constant(0, np.int64), builder.constant(1, np.int64)
    count = builder.node("Size", [segments])
    slots = builder.node("Range", [zero, count, one])
    wanted = builder.node("Add", [slots, builder.constant(offset, np.int64)])
    last = builder.node("Sub", [count, one])
    index = builder.node("Min", [builder.node("Max", [wanted, zero]), last])
    # segment numbers are unique in a batch, so the end of a row is the end of a text
    same = builder.node("Equal", [segments, builder.gather(segments, index)])
    inside = builder.node("And", [same, builder.node("Equal", [index, wanted])])
    factor = builder.node("Unsqueeze", [builder.node("Cast", [inside], to=TensorProto.FLOAT), builder.ints(1)])
    return builder.node("Mul", [builder.gather(hidden, index), factor])
