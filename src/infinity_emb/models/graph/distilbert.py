"""DistilBERT: BERT without token types and with other names (Sanh et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

EPSILON = 1e-12  # fixed in the reference, not in config.json


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states; a sinusoidal position table is stored like a learnt one."""
    width, heads = int(require_config(config, "dim")), int(require_config(config, "n_heads"))
    words = builder.lookup("embeddings.word_embeddings.weight", builder.flatten(builder.input("input_ids")))
    places = builder.lookup("embeddings.position_embeddings.weight", builder.flatten(builder.input("position_ids")))
    hidden = builder.layer_norm(builder.add(words, places), "embeddings.LayerNorm", EPSILON)
    attention = SegmentAttention(builder, Heads(heads, width // heads), segment_mask(builder))
    builder.state(hidden)
    for number in range(int(require_config(config, "n_layers"))):
        hidden = builder.state(_layer(builder, config, attention, hidden, f"transformer.layer.{number}"))
    return hidden


def score(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """Linear and ReLU on the first token, then one linear layer."""
    width = int(require_config(config, "dim"))
    first = builder.gather(hidden, builder.input("first_index"))
    inner = builder.activation(builder.linear(first, "pre_classifier", (width, width)), "relu")
    return builder.linear(inner, "classifier", (labels, width))


def _layer(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    width, inner = int(config["dim"]), int(require_config(config, "hidden_dim"))
    query, key, value = (
        builder.linear(hidden, f"{name}.attention.{part}_lin", (width, width)) for part in ("q", "k", "v")
    )
    attended = builder.linear(attention(query, key, value), f"{name}.attention.out_lin", (width, width))
    hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.sa_layer_norm", EPSILON)
    expanded = builder.linear(hidden, f"{name}.ffn.lin1", (inner, width))
    activated = builder.activation(expanded, str(config.get("activation", "gelu")))
    contracted = builder.linear(activated, f"{name}.ffn.lin2", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.output_layer_norm", EPSILON)


DISTILBERT = Architecture(encode, score, ("distilbert.",))
