"""A finished graph: the protobuf, and the checkpoint's own tensors that it refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor inside a safetensors file, memory-mapped.

    Attributes:
        array: View of the file; bfloat16 is seen as uint16 since numpy has no such type.
        onnx_type: `onnx.TensorProto.DataType` of the tensor.
    """

    array: NDArray[Any]
    onnx_type: int


@dataclass(frozen=True, slots=True)
class Graph:
    """An ONNX graph without its weights.

    Attributes:
        with_initializers: Serialized model whose weights are initializers with external data
            (location, offset and length inside the safetensors file).
        with_inputs: The same graph with the weights as inputs, for libraries that want to be handed constants.
        weights: Weight name → tensor.
        inputs: Names of the arrays the graph takes, as in `backends.base`.
        outputs: Names of the arrays it returns: `embedding` (and `norm`), or `logits`.
        packed: Rows may hold several texts; else one text a row.
    """

    with_initializers: bytes
    with_inputs: bytes
    weights: dict[str, Weight]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    packed: bool = True
