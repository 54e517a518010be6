"""From a checkpoint to an ONNX graph that takes packed rows and returns one vector, or its logits, per text."""

from __future__ import annotations

from infinity_emb.models.graph.build import build_graph
from infinity_emb.models.graph.graph import Graph
from infinity_emb.models.graph.registry import has_builder, supported_model_types
from infinity_emb.models.graph.source import obtain_graph

__all__ = ["Graph", "build_graph", "has_builder", "obtain_graph", "supported_model_types"]
