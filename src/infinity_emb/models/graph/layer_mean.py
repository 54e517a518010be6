"""The weighted mean of a token's states over the layers, as graph nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError, NotComputedError
from infinity_emb.models.graph.tensors import module_tensors

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.spec.layer_mean import LayerMeanSpec


def mean_of_layers(builder: GraphBuilder, module: LayerMeanSpec, hidden: str) -> str:
    """Token states `[slots, hidden]`; the last state is what the architecture gives, its final norm included.

    Raises:
        NotComputedError: The architecture does not tell the states of its layers.
        CheckpointError: It has another number of layers than the module.
    """
    if not builder.states:
        raise NotComputedError(
            "WeightedLayerPooling needs the states of every layer, which the graph builder of this architecture does "
            "not give. Use --engine torch for this model.",
            param="modules.json: WeightedLayerPooling",
        )
    states = [*builder.states[:-1], hidden]
    if len(states) != module.start + module.count:
        raise CheckpointError(
            f"WeightedLayerPooling: num_hidden_layers says {module.start + module.count - 1}, but the transformer has "
            f"{len(states) - 1} layers. Correct its config.json, or download the repository again.",
            param="num_hidden_layers",
        )
    factors = builder.weight("layer_weights", (module.count,), module_tensors(module.weights))
    weighed = [
        builder.node("Mul", [state, builder.gather(factors, builder.ints(number))])
        for number, state in enumerate(states[module.start :])
    ]
    return builder.node("Div", [builder.add(*weighed), builder.node("ReduceSum", [factors], keepdims=1)])
