"""Makes a graph of ours from an ONNX file that somebody else wrote: mask before it, pooling behind it, weights outside.

Such a file takes padded rows, one text a row: `input_ids`, `attention_mask`, some also `token_type_ids` and
`position_ids`; and gives token states `[rows, width, hidden]` or logits `[rows, labels]`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx
import onnx.inliner
from onnx import TensorProto, compose, helper

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.builder import INPUTS, GraphBuilder
from infinity_emb.models.graph.graph import Graph
from infinity_emb.models.graph.heads import apply_modules, token_vectors
from infinity_emb.models.graph.outside import take_out
from infinity_emb.models.graph.rewrite import rewrite_for
from infinity_emb.models.graph.tensors import Tensors

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.model import ModelSpec

_PREFIX = "file/"  # before every name of the file, so that none meets one of ours
_TAKEN = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
_STATES = ("last_hidden_state", "token_embeddings")
_QUANTIZED = (
    "DynamicQuantizeLinear",
    "QuantizeLinear",
    "DequantizeLinear",
    "MatMulInteger",
    "QLinearMatMul",
    "MatMulNBits",
)
_DecodeError = importlib.import_module("google.protobuf.message").DecodeError  # what onnx raises for broken files
_SMALL_FORMATS = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """An opened file; weights kept beside it are not read yet.

    Attributes:
        model: The protobuf.
        is_float32: Neither quantised nor in half precision.
    """

    model: onnx.ModelProto
    is_float32: bool


def open_file(path: Path) -> OnnxFile:
    """Parse an ONNX file; raises `CheckpointError` if it is none."""
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (_DecodeError, OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} is not a readable ONNX file ({error}). Download it again.", param=path.name
        ) from error
    if not model.graph.node:
        raise CheckpointError(f"{path} holds no ONNX graph. Download it again.", param=path.name)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    quantized = any(node.op_type in _QUANTIZED for node in model.graph.node)
    small = any(tensor.data_type in _SMALL_FORMATS for tensor in model.graph.initializer)
    return OnnxFile(model, not quantized and not small)


def adapt_file(spec: ModelSpec, path: Path, file: OnnxFile) -> Graph:
    """Put our contract around a file; its weights stay memory-mapped where they lie outside of it.

    Raises:
        CheckpointError: It takes or gives something else than the checkpoint's task needs.
    """
    model = file.model
    version = next((opset.version for opset in model.opset_import if opset.domain in ("", "ai.onnx")), 0)
    stored = {tensor.name for tensor in model.graph.initializer}
    asked = [value.name for value in model.graph.input if value.name not in stored]
    output = _PREFIX + _choose_output(spec, path, model.graph.output)
    _check_inputs(path, asked)
    compose.add_prefix_graph(model.graph, _PREFIX, inplace=True)
    before, ours = _feed(asked)
    head = _head(spec, output)
    outside = take_out(path, model.graph)
    nodes = [*before, *model.graph.node]

    def assemble(tail: bytes, outside_inputs: list[Any], outside_tensors: list[Any]) -> bytes:
        made = onnx.load_from_string(tail)
        given = {value.name for value in made.graph.input}
        inputs = [*made.graph.input, *(_input(name) for name in ours if name not in given), *outside_inputs]
        behind = rewrite_for(version, made.graph, path)
        graph = helper.make_graph(
            [*nodes, *behind],
            "model",
            inputs,
            list(made.graph.output),
            [*model.graph.initializer, *made.graph.initializer, *outside_tensors],
            sparse_initializer=list(model.graph.sparse_initializer),
        )
        whole = helper.make_model(graph, opset_imports=model.opset_import, ir_version=max(model.ir_version, 4))
        return bytes(whole.SerializeToString())

    inputs = (*head.inputs, *(name for name in ours if name not in head.inputs))
    return Graph(
        with_initializers=assemble(head.with_initializers, [], [one.as_external for one in outside]),
        with_inputs=assemble(head.with_inputs, [one.as_input for one in outside], []),
        weights=head.weights | {one.name: one.weight for one in outside},
        inputs=inputs,
        outputs=head.outputs,
        packed=False,
    )


def _check_inputs(path: Path, asked: list[str]) -> None:
    unknown = [name for name in asked if name not in _TAKEN]
    if unknown or "input_ids" not in asked:
        raise CheckpointError(
            f"{path} takes {', '.join(asked)}; supported are files that take input_ids and any of "
            f"{', '.join(_TAKEN[1:])}. Use another file, or --engine torch.",
            param=path.name,
        )


def _choose_output(spec: ModelSpec, path: Path, outputs: Any) -> str:
    """Token states by name or by rank, or the logits; checked against the checkpoint where the file says its shape."""
    scores = spec.classifies
    names, rank = (("logits",), 2) if scores else (_STATES, 3)
    by_name = [value for name in names for value in outputs if value.name == name]
    fitting = [value for value in [*by_name, *outputs] if len(value.type.tensor_type.shape.dim) == rank]
    wanted = "logits [rows, labels]" if scores else "token states [rows, width, hidden]"
    if not fitting:
        raise CheckpointError(
            f"{path} gives {', '.join(value.name for value in outputs)}, of which none are {wanted}. "
            "Use another file, or --engine torch.",
            param=path.name,
        )
    size, needed = fitting[0].type.tensor_type.shape.dim[-1].dim_value, len(spec.labels) if scores else spec.hidden_size
    if size and size != needed:
        raise CheckpointError(
            f"{path} gives {fitting[0].name} {size} wide, but config.json says {needed}. They do not belong together.",
            param=path.name,
        )
    return str(fitting[0].name)


def _feed(asked: list[str]) -> tuple[list[onnx.NodeProto], tuple[str, ...]]:
    """Nodes that make the file's inputs from ours, and the names of ours."""
    nodes, ours = [], {"input_ids": None}
    for name in asked:
        target = _PREFIX + name
        if name == "attention_mask":
            ours["segment_ids"] = None
            nodes += [
                helper.make_node("Cast", ["segment_ids"], ["real"], to=TensorProto.BOOL),
                helper.make_node("Cast", ["real"], [target], to=TensorProto.INT64),
            ]
        else:
            ours[name] = None
            nodes.append(helper.make_node("Identity", [name], [target]))
    return nodes, tuple(ours)


def _head(spec: ModelSpec, output: str) -> Graph:
    """What comes behind the file: a graph whose nodes read a value that only the file's nodes make."""
    builder = GraphBuilder(Tensors(()))
    value = builder.node("Cast", [output], to=TensorProto.FLOAT)
    if spec.classifies:
        return builder.finish({"logits": (value, len(spec.labels))})
    hidden = builder.node("Reshape", [value, builder.ints(-1, spec.hidden_size)])
    make = token_vectors if spec.gives_tokens else apply_modules
    return builder.finish(make(builder, spec, hidden))


def _input(name: str) -> onnx.ValueInfoProto:
    dtype, shape = INPUTS[name]
    return helper.make_tensor_value_info(name, dtype, list(shape))
