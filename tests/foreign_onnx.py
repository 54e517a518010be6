"""Writes tiny ONNX files as other programs do: padded rows in, token states or logits out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tiny

if TYPE_CHECKING:
    from pathlib import Path

VOCABULARY = 100


def write(
    path: Path,
    *,
    opset: int = 14,
    beside: bool = False,
    location: str | None = None,
    labels: int = 0,
    hidden: int = tiny.HIDDEN,
    pooled: bool = False,
    quantized: bool = False,
    extra_input: str | None = None,
    seed: int = 0,
) -> np.ndarray:
    """A "model" whose state of a token is its row of a table plus the mean of the rows of all real tokens.

    Returns the table. Names of inner values are such as our own graphs use, too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    table = np.random.default_rng(seed).normal(size=(VOCABULARY, hidden)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["constant_0", "input_ids"], ["gather_1"], axis=0),
        helper.make_node("Cast", ["attention_mask"], ["cast_2"], to=TensorProto.FLOAT),
        helper.make_node("Reshape", ["cast_2", "shape"], ["reshape_3"]),
        helper.make_node("Mul", ["gather_1", "reshape_3"], ["mul_4"]),
        _mean(opset, "mul_4", "total"),
        _mean(opset, "reshape_3", "real"),
        helper.make_node("Div", ["total", "real"], ["div_5"]),
        helper.make_node("Add", ["gather_1", "div_5"], ["last_hidden_state"]),
    ]
    output, shape = "last_hidden_state", ["b", "s", hidden]
    if quantized:
        nodes.append(helper.make_node("DequantizeLinear", ["small", "factor"], ["unused"]))
    if labels or pooled:
        nodes.append(helper.make_node("Gather", ["last_hidden_state", "zero"], ["first"], axis=1))
        nodes.append(helper.make_node("Slice", ["first", "from", "to", "from_axis"], ["logits"]))
        output, shape = "logits", ["b", labels or hidden]
    names = ["input_ids", "attention_mask", *([extra_input] if extra_input else [])]
    constants = {
        "shape": np.array([0, -1, 1]),
        "zero": np.array(0),
        "from": np.array([0]),
        "to": np.array([labels or hidden]),
        "from_axis": np.array([1]),
        "axes": np.array([1]),
        "small": np.array([1], np.int8),
        "factor": np.array(0.5, np.float32),
    }
    used = {name for node in nodes for name in node.input}
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items() if name in used]
    weights = numpy_helper.from_array(table, "constant_0")
    if beside:
        _move_out(weights, path, location)
    graph = helper.make_graph(
        nodes,
        "somebody's",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "s"]) for name in names],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [weights, *tensors],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return table


def states(table: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """What the file computes for one text."""
    return table[ids] + table[ids].mean(axis=0)


def _mean(opset: int, value: str, output: str) -> onnx.NodeProto:
    if opset < 18:
        return helper.make_node("ReduceMean", [value], [output], axes=[1], keepdims=1)
    return helper.make_node("ReduceMean", [value, "axes"], [output], keepdims=1)


def _move_out(tensor: onnx.TensorProto, path: Path, location: str | None) -> None:
    data = path.with_name(path.name + "_data")
    data.write_bytes(bytes(8) + tensor.raw_data)
    size = len(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location or data.name), ("offset", "8"), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
