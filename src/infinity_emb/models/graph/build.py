"""Puts a model's graph together: token states by architecture, then its modules or its scoring head."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import NotComputedError
from infinity_emb.models.graph.architecture import check_config
from infinity_emb.models.graph.builder import GraphBuilder
from infinity_emb.models.graph.codes import codes_of
from infinity_emb.models.graph.heads import apply_modules, token_vectors
from infinity_emb.models.graph.registry import architecture, joint_architecture
from infinity_emb.models.graph.tensors import Tensors
from infinity_emb.models.graph.words import answer_logit, sparse_weights
from infinity_emb.types import Modality, Task

if TYPE_CHECKING:
    from infinity_emb.models.graph.graph import Graph
    from infinity_emb.models.spec.model import ModelSpec

# fields that any config.json may have and that change the result, with the values that are computed
_EVERYWHERE: dict[str, tuple[Any, ...]] = {
    "add_cross_attention": (False,),
    "is_decoder": (False,),
    "quantization_config": (),
}


def build_graph(spec: ModelSpec) -> Graph:
    """Build the graph of a checkpoint; nothing of the weights is read or copied.

    Raises:
        CheckpointError: No builder for the architecture, or tensors that do not fit the config.
    """
    for field, known in _EVERYWHERE.items():
        check_config(spec.config, field, *known)
    if spec.media:
        joint = joint_architecture(spec.model_type)
        shapes = {} if spec.reads is Modality.TEXT else spec.media_spec(spec.reads).arrays
        builder = GraphBuilder(Tensors(spec.weights, joint.prefixes), longest=spec.max_length, media=shapes)
        vectors = joint.towers[spec.reads](builder, spec.config)
        return builder.finish(apply_modules(builder, spec, vectors))
    family = architecture(spec.model_type, spec.config)
    expansion = spec.late.expansion if spec.late else None
    hides = expansion is not None and not expansion.attend
    tensors = Tensors(spec.weights, family.prefixes)
    builder = GraphBuilder(tensors, hides_filling=hides, longest=spec.max_length)
    hidden = family.encode(builder, spec.config)
    if spec.weighs_words and spec.sparse is not None:
        return replace(builder.finish(sparse_weights(builder, spec, spec.sparse, hidden)), packed=False)
    if spec.task in {Task.EMBED, Task.MULTI_VECTOR, Task.SPARSE}:
        return replace(builder.finish(_vectors(builder, spec, hidden)), packed=not spec.recurs)
    if spec.judge is not None:
        return builder.finish({"logits": (answer_logit(builder, spec.config, spec.judge, hidden), 1)})
    if family.score is None:
        raise NotComputedError(
            f"The graph builder for {spec.model_type!r} knows no scoring head. Use --engine torch for this model.",
            param="config.json: architectures",
        )
    labels = len(spec.labels)
    return builder.finish({"logits": (family.score(builder, spec.config, hidden, labels), labels)})


def _vectors(builder: GraphBuilder, spec: ModelSpec, hidden: str) -> dict[str, tuple[str, int]]:
    """What the modules behind the token states make of them."""
    if spec.sparse is not None and spec.sparse.codes is not None:
        return codes_of(builder, spec, spec.sparse.codes, hidden)
    return (apply_modules if spec.task is Task.EMBED else token_vectors)(builder, spec, hidden)
