"""A feed-forward layer that is a mixture of experts: every token goes to the few that its router prefers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import require_config

if TYPE_CHECKING:
    from infinity_emb.models.graph.architecture import Config
    from infinity_emb.models.graph.builder import GraphBuilder


def mixture(builder: GraphBuilder, config: Config, hidden: str, name: str) -> str:
    """Nomic's mixture: the weights of the chosen experts are not brought back to a sum of one.

    Every expert computes every token and those not chosen count nothing. That is `experts / chosen` times the
    arithmetic of a sparse kernel, in shapes that every backend runs well.

    Args:
        builder: Of the graph.
        config: With `num_experts`, `moe_top_k`, `activation_function` and the sizes.
        hidden: `[slots, width]`.
        name: Prefix of the tensors `router.layer`, `experts.mlp.w1`, `experts.mlp.w2` and `experts.bias`.
    """
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    count = int(require_config(config, "num_experts"))
    up = builder.weight(f"{name}.experts.mlp.w1", (count * inner, width))
    down = builder.weight(f"{name}.experts.mlp.w2", (count * inner, width))
    activated = builder.activation(builder.node("Gemm", [hidden, up], transB=1), str(config["activation_function"]))
    by_expert = builder.node("Reshape", [activated, builder.ints(-1, count, inner)])
    weights = builder.node("Unsqueeze", [_weights(builder, config, hidden, f"{name}.router.layer"), builder.ints(2)])
    weighed = builder.node("Reshape", [builder.node("Mul", [by_expert, weights]), builder.ints(-1, count * inner)])
    return builder.add(builder.node("MatMul", [weighed, down]), builder.weight(f"{name}.experts.bias", (width,)))


def _weights(builder: GraphBuilder, config: Config, hidden: str, name: str) -> str:
    """Router's softmax `[slots, experts]`, 0 for the experts that are not among the `moe_top_k` largest."""
    shape = (int(config["num_experts"]), int(config["hidden_size"]))
    scores = builder.node("Softmax", [builder.linear(hidden, name, shape, bias=False)], axis=-1)
    chosen = int(require_config(config, "moe_top_k"))
    least = builder.smallest_of_top(scores, chosen)
    return builder.node("Where", [builder.node("Less", [scores, least]), builder.number(0.0), scores])
