"""JinaBERT v2: BERT without positions, whose scores fall off with distance (ALiBi), and a gated feed-forward.

Two layouts of one model: `jina-bert-implementation` (English) and `jina-bert-v2-qk-post-norm` (code, German …),
which also normalises queries and keys. Both call themselves `bert` with `position_embedding_type` "alibi".
Sources: Günther et al. 2023; Press et al. 2022.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.bert import score_pooled
from infinity_emb.models.graph.relative import alibi_bias

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

ACTIVATIONS = {"geglu": "gelu", "reglu": "relu"}


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states."""
    require_config(config, "feed_forward_type")
    check_config(config, "feed_forward_type", *ACTIVATIONS)
    width, heads = int(require_config(config, "hidden_size")), int(require_config(config, "num_attention_heads"))
    words = builder.lookup("embeddings.word_embeddings.weight", builder.flatten(builder.input("input_ids")))
    types = builder.lookup("embeddings.token_type_embeddings.weight", builder.flatten(builder.input("token_type_ids")))
    hidden = builder.layer_norm(builder.add(words, types), "embeddings.LayerNorm", _epsilon(config))
    mask = builder.add(alibi_bias(builder, heads), segment_mask(builder))
    attention = SegmentAttention(builder, Heads(heads, width // heads), mask)
    layer = _layer if builder.tensors.has("encoder.layer.0.mlp.gated_layers.weight") else _post_norm_layer
    for number in range(int(require_config(config, "num_hidden_layers"))):
        hidden = layer(builder, config, attention, hidden, f"encoder.layer.{number}")
    return hidden


def _layer(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    """The first half of the wide layer passes through the activation."""
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    query, key, value = _project(builder, config, hidden, name)
    hidden = _attended(builder, config, attention(query, key, value), hidden, name)
    both = builder.linear(hidden, f"{name}.mlp.gated_layers", (2 * inner, width), bias=False)
    gate, value = builder.split(both, inner, inner)
    activated = builder.activation(gate, ACTIVATIONS[config["feed_forward_type"]])
    contracted = builder.linear(builder.node("Mul", [activated, value]), f"{name}.mlp.wo", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.mlp.layernorm", _epsilon(config))


def _post_norm_layer(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    """The second half passes through the activation; the attended state is added and normalised twice."""
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    query, key, value = _project(builder, config, hidden, name)
    query = builder.layer_norm(query, f"{name}.attention.self.layer_norm_q", _epsilon(config))
    key = builder.layer_norm(key, f"{name}.attention.self.layer_norm_k", _epsilon(config))
    attended = _attended(builder, config, attention(query, key, value), hidden, name)
    hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.layer_norm_1", _epsilon(config))
    both = builder.linear(hidden, f"{name}.mlp.up_gated_layer", (2 * inner, width), bias=False)
    value, gate = builder.split(both, inner, inner)
    activated = builder.activation(gate, ACTIVATIONS[config["feed_forward_type"]])
    contracted = builder.linear(builder.node("Mul", [activated, value]), f"{name}.mlp.down_layer", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.layer_norm_2", _epsilon(config))


def _project(builder: GraphBuilder, config: Config, hidden: str, name: str) -> list[str]:
    width = int(config["hidden_size"])
    return [
        builder.linear(hidden, f"{name}.attention.self.{part}", (width, width)) for part in ("query", "key", "value")
    ]


def _attended(builder: GraphBuilder, config: Config, context: str, hidden: str, name: str) -> str:
    width = int(config["hidden_size"])
    attended = builder.linear(context, f"{name}.attention.output.dense", (width, width))
    return builder.layer_norm(builder.add(attended, hidden), f"{name}.attention.output.LayerNorm", _epsilon(config))


def _epsilon(config: Config) -> float:
    return float(config.get("layer_norm_eps", 1e-12))


JINA_BERT = Architecture(encode, score_pooled, ("bert.",))
