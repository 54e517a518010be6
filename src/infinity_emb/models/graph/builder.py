"""Writes ONNX nodes; the vocabulary in which architectures are spelled."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from infinity_emb.errors import CheckpointError, NotComputedError
from infinity_emb.models.graph.graph import Graph, Weight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infinity_emb.models.graph.tensors import Location, Tensors

OPSET = 20
IR_VERSION = 10

# name → (onnx type, symbolic shape); see the table in backends/base.py
INPUTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "input_ids": (TensorProto.INT64, ("rows", "width")),
    "segment_ids": (TensorProto.INT64, ("rows", "width")),
    "key_segment_ids": (TensorProto.INT64, ("rows", "width")),
    "position_ids": (TensorProto.INT64, ("rows", "width")),
    "token_type_ids": (TensorProto.INT64, ("rows", "width")),
    "adapter_ids": (TensorProto.INT64, ("rows", "width")),
    "pool_weights": (TensorProto.FLOAT, ("segments", "columns")),
    "position_weights": (TensorProto.FLOAT, ("segments", "columns")),
    "first_index": (TensorProto.INT64, ("segments",)),
    "last_index": (TensorProto.INT64, ("segments",)),
    "token_index": (TensorProto.INT64, ("segments", "longest")),
}

# What the rows of an output are, where they are not the texts.
ROWS = {"tokens": "slots", "token_weights": "slots", "sparse": "rows"}

GELU_NAMES = {
    "gelu": "none",
    "gelu_python": "none",
    "gelu_new": "tanh",
    "gelu_fast": "tanh",
    "gelu_pytorch_tanh": "tanh",
}
SIMPLE_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}


class GraphBuilder:
    """Collects nodes and the weights they use; every method returns the name of a value.

    Args:
        tensors: Of the checkpoint.
        hides_filling: A text's other tokens do not see what a query is filled up with.
        longest: Tokens of the longest text; 0 if that is not known.
        media: Arrays that may be asked for beside `INPUTS`, and their shapes for one item.
    """

    def __init__(
        self,
        tensors: Tensors,
        *,
        hides_filling: bool = False,
        longest: int = 0,
        media: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    ) -> None:
        self.tensors = tensors
        self.longest = longest
        self.hides_filling = hides_filling
        self.states: list[str] = []
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], onnx.TensorProto] = {}
        self._weights: dict[str, tuple[Location, Weight]] = {}
        self._casts: dict[str, str] = {}
        self._inputs: dict[str, None] = {}
        self._media = dict(media)
        self._count = 0

    def input(self, name: str) -> str:
        """Ask for one of the arrays of `INPUTS`."""
        self._inputs[name] = None
        return name

    def media(self, name: str) -> tuple[str, tuple[int, ...]]:
        """Ask for an array of images or sounds: float32 `[segments, *shape]`, and that shape."""
        return self.input(name), self._media[name]

    def node(self, operator: str, inputs: list[str], **attributes: Any) -> str:
        """Add one operator with one output."""
        self._count += 1
        output = f"{operator.lower()}_{self._count}"
        self._nodes.append(helper.make_node(operator, inputs, [output], name=output, **attributes))
        return output

    def constant(self, value: Any, dtype: type[np.generic]) -> str:
        """A small constant inside the graph, shared by value."""
        array = np.asarray(value, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = numpy_helper.from_array(array, f"constant_{len(self._constants)}")
        return str(self._constants[key].name)

    def number(self, value: float) -> str:
        """A float32 scalar."""
        return self.constant(value, np.float32)

    def ints(self, *values: int) -> str:
        """An int64 vector, for shapes and axes."""
        return self.constant(values, np.int64)

    def weight(self, name: str, shape: tuple[int, ...] | None = None, source: Tensors | None = None) -> str:
        """A tensor of the checkpoint (or of `source`) as float32; checked against `shape` where it is known.

        Raises:
            CheckpointError: It is missing or has another shape.
        """
        full_name = self.stored(name, shape, source)
        if self._weights[full_name][1].onnx_type == TensorProto.FLOAT:
            return full_name
        if full_name not in self._casts:
            self._casts[full_name] = self.node("Cast", [full_name], to=TensorProto.FLOAT)
        return self._casts[full_name]

    def lookup(self, name: str, index: str, shape: tuple[int, ...] | None = None) -> str:
        """Rows of a table of the checkpoint as float32; of a table stored otherwise only these rows are converted."""
        full_name = self.stored(name, shape)
        rows = self.gather(full_name, index)
        if self._weights[full_name][1].onnx_type == TensorProto.FLOAT:
            return rows
        return self.node("Cast", [rows], to=TensorProto.FLOAT)

    def stored(self, name: str, shape: tuple[int, ...] | None = None, source: Tensors | None = None) -> str:
        """A tensor in the format it is stored in; the rest as `weight`."""
        source = source or self.tensors
        full_name, location = source.find(name)
        if shape is not None and location.shape != shape:
            raise CheckpointError(
                f"The tensor {full_name!r} in {location.file.name} has shape {list(location.shape)}, but config.json "
                f"says {list(shape)}. The files do not belong together; download the repository again.",
                param=full_name,
            )
        full_name = source.scope + full_name
        if full_name not in self._weights:
            self._weights[full_name] = (location, source.weight(location))
        return full_name

    def linear(self, value: str, name: str, shape: tuple[int, int] | None = None, *, bias: bool = True) -> str:
        """`value @ W.T + b`, in the layout Hugging Face stores; `shape` is `(out, in)`."""
        inputs = [value, self.weight(f"{name}.weight", shape)]
        if bias:
            inputs.append(self.weight(f"{name}.bias", shape[:1] if shape else None))
        return self.node("Gemm", inputs, transB=1)

    def layer_norm(self, value: str, name: str, epsilon: float, *, bias: bool = True) -> str:
        """Layer normalisation over the last axis."""
        inputs = [value, self.weight(f"{name}.weight")]
        if bias:
            inputs.append(self.weight(f"{name}.bias"))
        return self.node("LayerNormalization", inputs, axis=-1, epsilon=epsilon)

    def rms_norm(self, value: str, name: str, epsilon: float, *, offset: float = 0.0) -> str:
        """`x / √(mean(x²) + ε) · (w + offset)` over the last axis (Zhang and Sennrich 2019)."""
        square = self.node("ReduceMean", [self.node("Pow", [value, self.number(2.0)]), self.ints(-1)], keepdims=1)
        length = self.node("Sqrt", [self.node("Add", [square, self.number(epsilon)])])
        weight = self.weight(f"{name}.weight")
        if offset:
            weight = self.node("Add", [weight, self.number(offset)])
        return self.node("Mul", [self.node("Div", [value, length]), weight])

    def split(self, value: str, first: int, second: int, *, axis: int = -1) -> tuple[str, str]:
        """`[…, first + second]` → `[…, first]` and `[…, second]`, or likewise along another axis."""
        self._count += 1
        outputs = [f"split_{self._count}_{number}" for number in (0, 1)]
        node = helper.make_node("Split", [value, self.ints(first, second)], outputs, name=outputs[0], axis=axis)
        self._nodes.append(node)
        return outputs[0], outputs[1]

    def state(self, hidden: str) -> str:
        """Note what goes into the first layer, and what comes out of each; the same value comes back."""
        self.states.append(hidden)
        return hidden

    def top(self, value: str, count: int) -> tuple[str, str]:
        """The `count` largest numbers along the last axis and their places."""
        self._count += 1
        outputs = [f"topk_{self._count}", f"topk_{self._count}_index"]
        node = helper.make_node("TopK", [value, self.ints(count)], outputs, name=outputs[0], axis=-1)
        self._nodes.append(node)
        return outputs[0], outputs[1]

    def smallest_of_top(self, value: str, count: int) -> str:
        """The `count`-th largest number along the last axis, `[…, 1]`."""
        top, _ = self.top(value, count)
        return self.node("Slice", [top, self.ints(count - 1), self.ints(count), self.ints(-1)])

    def activation(self, value: str, name: str) -> str:
        """An activation by its name in config.json."""
        if name in GELU_NAMES:
            return self.node("Gelu", [value], approximate=GELU_NAMES[name])
        if name in SIMPLE_ACTIVATIONS:
            return self.node(SIMPLE_ACTIVATIONS[name], [value])
        if name in {"silu", "swish"}:
            return self.node("Mul", [value, self.node("Sigmoid", [value])])
        if name == "quick_gelu":
            return self.node("Mul", [value, self.node("Sigmoid", [self.node("Mul", [value, self.number(1.702)])])])
        if name in {"identity", "linear"}:
            return value
        known = sorted([*GELU_NAMES, *SIMPLE_ACTIVATIONS, "silu", "swish", "quick_gelu", "identity", "linear"])
        raise NotComputedError(
            f"The activation {name!r} is not supported by the graph builder; known are {', '.join(known)}. "
            "Use --engine torch for this model.",
            param="config.json: hidden_act",
        )

    def add(self, *values: str) -> str:
        """Sum of several values."""
        total = values[0]
        for value in values[1:]:
            total = self.node("Add", [total, value])
        return total

    def gather(self, table: str, index: str) -> str:
        """Rows of a table."""
        return self.node("Gather", [table, index], axis=0)

    def flatten(self, value: str) -> str:
        """`[rows, width]` → `[slots]`."""
        return self.node("Reshape", [value, self.ints(-1)])

    def l2_norm(self, value: str) -> str:
        """`max(‖x‖₂, 1e-12)` along the last axis; dividing by it is `torch.nn.functional.normalize`."""
        norm = self.node("ReduceL2", [value, self.ints(-1)], keepdims=1)
        return self.node("Max", [norm, self.number(1e-12)])

    def finish(self, results: dict[str, tuple[str, int]]) -> Graph:
        """Close the graph; `results` is output name → (value, width of a row)."""
        for output, (value, _) in results.items():
            self._nodes.append(helper.make_node("Identity", [value], [output], name=output))
        inputs = [helper.make_tensor_value_info(name, *self._described(name)) for name in self._inputs]
        outputs = [
            helper.make_tensor_value_info(output, TensorProto.FLOAT, [ROWS.get(output, "segments"), width])
            for output, (_, width) in results.items()
        ]
        constants = list(self._constants.values())
        external = [_external(name, location, weight) for name, (location, weight) in self._weights.items()]
        handed_in = [
            helper.make_tensor_value_info(name, weight.onnx_type, list(location.shape))
            for name, (location, weight) in self._weights.items()
        ]
        return Graph(
            with_initializers=_serialize(self._nodes, inputs, outputs, [*constants, *external]),
            with_inputs=_serialize(self._nodes, [*inputs, *handed_in], outputs, constants),
            weights={name: weight for name, (_, weight) in self._weights.items()},
            inputs=tuple(self._inputs),
            outputs=tuple(results),
        )

    def _described(self, name: str) -> tuple[int, list[str | int]]:
        if name in self._media:
            return TensorProto.FLOAT, ["segments", *self._media[name]]
        dtype, shape = INPUTS[name]
        return dtype, list(shape)


def attention_scale(head_size: int) -> float:
    """`1/√d`, Vaswani et al. 2017, equation 1."""
    return 1.0 / math.sqrt(head_size)


def _external(name: str, location: Location, weight: Weight) -> onnx.TensorProto:
    tensor = TensorProto(name=name, data_type=weight.onnx_type, dims=location.shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (
        ("location", location.file.name),
        ("offset", str(location.info.start)),
        ("length", str(location.info.stop - location.info.start)),
    ):
        tensor.external_data.add(key=key, value=value)
    return tensor


def _serialize(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    initializers: list[onnx.TensorProto],
) -> bytes:
    graph = helper.make_graph(nodes, "model", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", OPSET)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION).SerializeToString())
