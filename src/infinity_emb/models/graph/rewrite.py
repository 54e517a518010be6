"""Spells nodes of ours for an older ONNX operator set, so that they can be put behind an older file's own nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import helper, numpy_helper

from infinity_emb.errors import CheckpointError

if TYPE_CHECKING:
    from pathlib import Path

    import onnx

OLDEST = 11
# Operator → the set in which its axes became an input.
_AXES_AS_INPUT = {"ReduceSum": 13, "ReduceL2": 18, "ReduceMax": 18, "ReduceMean": 18}
# Operator → the set that brought it.
_SINCE = {"LayerNormalization": 17, "Gelu": 20}


def rewrite_for(version: int, graph: onnx.GraphProto, path: Path) -> list[onnx.NodeProto]:
    """The nodes of `graph` as operator set `version` spells them.

    Raises:
        CheckpointError: The set is too old for one of them.
    """
    if version < OLDEST:
        raise CheckpointError(
            f"{path} uses the ONNX operator set {version}; supported are {OLDEST} and later. Export it again.",
            param=path.name,
        )
    constants = {tensor.name: tensor for tensor in graph.initializer}
    nodes = []
    for node in graph.node:
        if version < _SINCE.get(node.op_type, 0):
            raise CheckpointError(
                f"{path} uses the ONNX operator set {version}, but {node.op_type}, which a module of this checkpoint "
                f"needs, came with {_SINCE[node.op_type]}. Export it again with a newer set, or use --engine torch.",
                param=path.name,
            )
        nodes.append(_axes_as_attribute(node, constants) if version < _AXES_AS_INPUT.get(node.op_type, 0) else node)
    return nodes


def _axes_as_attribute(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto]) -> onnx.NodeProto:
    axes = numpy_helper.to_array(constants[node.input[1]]).tolist()
    attributes = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    return helper.make_node(node.op_type, [node.input[0]], list(node.output), name=node.name, axes=axes, **attributes)
