"""A convolution along each text of a packed row; neither a neighbour in the row nor padding reaches into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from infinity_emb.models.graph.tensors import module_tensors

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.graph.tensors import Tensors
    from infinity_emb.models.spec.convolution import ConvolutionSpec


def convolve_all(builder: GraphBuilder, module: ConvolutionSpec, hidden: str) -> str:
    """Every convolution of a module, side by side: `[slots, in]` → `[slots, out]`."""
    source = module_tensors(module.weights)
    parts = [
        convolve(builder, hidden, f"convs.{number}", kernel, source) for number, kernel in enumerate(module.kernels)
    ]
    return builder.node("Concat", parts, axis=-1)


def convolve(builder: GraphBuilder, hidden: str, name: str, kernel: int, source: Tensors | None = None) -> str:
    """`torch.nn.Conv1d` with zeros beyond both ends of a text: `[slots, in]` → `[slots, out]`.

    Args:
        builder: Of the graph.
        hidden: Token states.
        name: Of the weight `[out, in, kernel]` and the bias.
        kernel: Odd number of tokens that one result sees.
        source: Of the weights; None is the checkpoint.
    """
    taps = [_shifted(builder, hidden, offset) for offset in range(-(kernel // 2), kernel // 2 + 1)]
    weight = builder.node("Transpose", [builder.weight(f"{name}.weight", source=source)], perm=[2, 1, 0])
    parts = [
        builder.node("MatMul", [tap, builder.gather(weight, builder.constant(number, np.int64))])
        for number, tap in enumerate(taps)
    ]
    return builder.add(*parts, builder.weight(f"{name}.bias", source=source))


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
