"""The encoder of T5, mT5 and umT5: unscaled attention, bucket biases, RMS norm (Raffel et al. 2020).

T5 and mT5 have one bias for all layers, umT5 one of its own for each (Chung et al. 2023).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.relative import bucket_bias

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

BIAS = "encoder.block.{}.layer.0.SelfAttention.relative_attention_bias.weight"


def encode_t5(builder: GraphBuilder, config: Config) -> str:
    """Token states of T5; feed-forward is ReLU where config.json names none."""
    return _encode(builder, config, str(config.get("feed_forward_proj") or "relu"))


def encode_mt5(builder: GraphBuilder, config: Config) -> str:
    """Token states of mT5; feed-forward is gated GELU where config.json names none."""
    return _encode(builder, config, str(config.get("feed_forward_proj") or "gated-gelu"))


def encode_umt5(builder: GraphBuilder, config: Config) -> str:
    """Token states of umT5; feed-forward is gated GELU where config.json names none."""
    return _encode(builder, config, str(config.get("feed_forward_proj") or "gated-gelu"), own_biases=True)


def _encode(builder: GraphBuilder, config: Config, feed_forward: str, *, own_biases: bool = False) -> str:
    epsilon = float(config.get("layer_norm_epsilon", 1e-6))
    table = "shared.weight" if builder.tensors.has("shared.weight") else "encoder.embed_tokens.weight"
    hidden = builder.lookup(table, builder.flatten(builder.input("input_ids")))
    attention = _attention(builder, config, 0)
    for number in range(int(require_config(config, "num_layers"))):
        name = f"encoder.block.{number}.layer"
        if own_biases and number:
            attention = _attention(builder, config, number)
        normed = builder.rms_norm(hidden, f"{name}.0.layer_norm", epsilon)
        hidden = builder.add(hidden, _attend(builder, config, attention, normed, f"{name}.0.SelfAttention"))
        normed = builder.rms_norm(hidden, f"{name}.1.layer_norm", epsilon)
        hidden = builder.add(hidden, _feed_forward(builder, config, feed_forward, normed, f"{name}.1.DenseReluDense"))
    return builder.rms_norm(hidden, "encoder.final_layer_norm", epsilon)


def _attention(builder: GraphBuilder, config: Config, layer: int) -> SegmentAttention:
    """Attention with the bias of a layer."""
    buckets = int(config.get("relative_attention_num_buckets", 32))
    farthest = int(config.get("relative_attention_max_distance", 128))
    heads = Heads(int(require_config(config, "num_heads")), int(require_config(config, "d_kv")), scale=1.0)
    bias = bucket_bias(builder, BIAS.format(layer), buckets, farthest)
    return SegmentAttention(builder, heads, builder.add(bias, segment_mask(builder)))


def _attend(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    width, inner = int(require_config(config, "d_model")), attention.heads.hidden_size
    query, key, value = (builder.linear(hidden, f"{name}.{part}", (inner, width), bias=False) for part in "qkv")
    return builder.linear(attention(query, key, value), f"{name}.o", (width, inner), bias=False)


def _feed_forward(builder: GraphBuilder, config: Config, kind: str, hidden: str, name: str) -> str:
    width, inner = int(config["d_model"]), int(require_config(config, "d_ff"))
    gated, activation = kind.startswith("gated-"), kind.removeprefix("gated-")
    if kind == "gated-gelu":
        activation = "gelu_new"  # what T5 v1.1 was trained with, against its name
    first = builder.linear(hidden, f"{name}.wi_0" if gated else f"{name}.wi", (inner, width), bias=False)
    activated = builder.activation(first, activation)
    if gated:
        second = builder.linear(hidden, f"{name}.wi_1", (inner, width), bias=False)
        activated = builder.node("Mul", [activated, second])
    return builder.linear(activated, f"{name}.wo", (width, inner), bias=False)


T5 = Architecture(encode_t5, None, ())
MT5 = Architecture(encode_mt5, None, ())
UMT5 = Architecture(encode_umt5, None, ())
