"""ALBERT: BERT whose layers share their weights, with narrow embeddings (Lan et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states."""
    check_config(config, "position_embedding_type", "absolute")
    width, heads = int(require_config(config, "hidden_size")), int(require_config(config, "num_attention_heads"))
    hidden = builder.linear(_embeddings(builder, config), "encoder.embedding_hidden_mapping_in")
    attention = SegmentAttention(builder, Heads(heads, width // heads), segment_mask(builder))
    names, inside = _layer_names(config), int(config.get("inner_group_num", 1))
    builder.state(hidden)
    for number, name in enumerate(names, 1):
        hidden = _layer(builder, config, attention, hidden, name)
        if number % inside == 0:
            builder.state(hidden)
    return hidden


def score(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """Tanh pooler on the first token, then one linear layer."""
    width = int(require_config(config, "hidden_size"))
    first = builder.gather(hidden, builder.input("first_index"))
    pooled = builder.node("Tanh", [builder.linear(first, "pooler", (width, width))])
    return builder.linear(pooled, "classifier", (labels, width))


def _embeddings(builder: GraphBuilder, config: Config) -> str:
    parts = [
        builder.lookup(f"embeddings.{table}.weight", builder.flatten(builder.input(index)))
        for table, index in (
            ("word_embeddings", "input_ids"),
            ("token_type_embeddings", "token_type_ids"),
            ("position_embeddings", "position_ids"),
        )
    ]
    return builder.layer_norm(builder.add(*parts), "embeddings.LayerNorm", _epsilon(config))


def _layer_names(config: Config) -> list[str]:
    """Where each layer's weights are: a group serves several layers, a group may hold several in turn."""
    count, groups = int(require_config(config, "num_hidden_layers")), int(config.get("num_hidden_groups", 1))
    inside = range(int(config.get("inner_group_num", 1)))
    numbers = [int(number / (count / groups)) for number in range(count)]
    return [f"encoder.albert_layer_groups.{group}.albert_layers.{part}" for group in numbers for part in inside]


def _layer(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    query, key, value = (
        builder.linear(hidden, f"{name}.attention.{part}", (width, width)) for part in ("query", "key", "value")
    )
    attended = builder.linear(attention(query, key, value), f"{name}.attention.dense", (width, width))
    hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.attention.LayerNorm", _epsilon(config))
    expanded = builder.linear(hidden, f"{name}.ffn", (inner, width))
    activated = builder.activation(expanded, str(config.get("hidden_act", "gelu_new")))
    contracted = builder.linear(activated, f"{name}.ffn_output", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.full_layer_layer_norm", _epsilon(config))


def _epsilon(config: Config) -> float:
    return float(config.get("layer_norm_eps", 1e-12))


ALBERT = Architecture(encode, score, ("albert.",))
