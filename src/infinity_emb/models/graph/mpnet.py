"""MPNet: BERT with a relative position bias that all layers share, positions as in RoBERTa (Song et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.bert import score_roberta
from infinity_emb.models.graph.positions import counted_positions
from infinity_emb.models.graph.relative import bucket_bias

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

PADDING_ID = 1  # fixed in the reference, whatever config.json says
BUCKETS, FARTHEST = 32, 128  # fixed in the reference


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states."""
    check_config(config, "relative_attention_num_buckets", BUCKETS)
    width, heads = int(require_config(config, "hidden_size")), int(require_config(config, "num_attention_heads"))
    words = builder.lookup("embeddings.word_embeddings.weight", builder.flatten(builder.input("input_ids")))
    places = builder.lookup("embeddings.position_embeddings.weight", counted_positions(builder, PADDING_ID))
    hidden = builder.layer_norm(builder.add(words, places), "embeddings.LayerNorm", _epsilon(config))
    bias = bucket_bias(builder, "encoder.relative_attention_bias.weight", BUCKETS, FARTHEST)
    mask = builder.add(bias, segment_mask(builder))
    attention = SegmentAttention(builder, Heads(heads, width // heads), mask)
    builder.state(hidden)
    for number in range(int(require_config(config, "num_hidden_layers"))):
        hidden = builder.state(_layer(builder, config, attention, hidden, f"encoder.layer.{number}"))
    return hidden


def _layer(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    query, key, value = (
        builder.linear(hidden, f"{name}.attention.attn.{part}", (width, width)) for part in ("q", "k", "v")
    )
    attended = builder.linear(attention(query, key, value), f"{name}.attention.attn.o", (width, width))
    hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.attention.LayerNorm", _epsilon(config))
    expanded = builder.linear(hidden, f"{name}.intermediate.dense", (inner, width))
    activated = builder.activation(expanded, str(config.get("hidden_act", "gelu")))
    contracted = builder.linear(activated, f"{name}.output.dense", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.output.LayerNorm", _epsilon(config))


def _epsilon(config: Config) -> float:
    return float(config.get("layer_norm_eps", 1e-12))


MPNET = Architecture(encode, score_roberta, ("mpnet.",))
