"""Gemma 3 text, the body of EmbeddingGemma: local and global layers in turn, a norm before and after each block.

Sources: Gemma Team 2025; the modelling file of transformers 5 for the fields and names.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, attention_mask
from infinity_emb.models.graph.decoder import FULL, SLIDING, gated_feed_forward, score_last
from infinity_emb.models.graph.frequencies import read_frequencies
from infinity_emb.models.graph.rotary import Rotary

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

GLOBAL_BASE, LOCAL_BASE = 1_000_000.0, 10_000.0


class _Layers:
    """What all layers of a checkpoint share."""

    def __init__(self, builder: GraphBuilder, config: Config) -> None:
        self._builder, self._config = builder, config
        self.width = int(require_config(config, "hidden_size"))
        count, shared = int(config.get("num_attention_heads", 8)), int(config.get("num_key_value_heads", 4))
        scale = 1.0 / math.sqrt(float(config.get("query_pre_attn_scalar", 256)))
        self._heads = Heads(count, int(config.get("head_dim", 256)), shared, scale)
        self._activation = {"hidden_act": config.get("hidden_activation") or "gelu_pytorch_tanh"}
        self.kinds = _kinds(config)
        both_ways = bool(config.get("use_bidirectional_attention"))
        window = int(config.get("sliding_window") or 4096)
        reaches = {FULL: None, SLIDING: window // 2 if both_ways else window - 1}
        self._attentions = {
            kind: SegmentAttention(
                builder, self._heads, attention_mask(builder, causal=not both_ways, reach=reaches[kind])
            )
            for kind in dict.fromkeys(self.kinds)
        }
        self._turns = {kind: self._rotary(kind) for kind in dict.fromkeys(self.kinds)}

    def norm(self, value: str, name: str) -> str:
        """RMS norm whose weights are stored less one."""
        return self._builder.rms_norm(value, name, float(self._config.get("rms_norm_eps", 1e-6)), offset=1.0)

    def __call__(self, hidden: str, number: int) -> str:
        """One layer."""
        builder, name = self._builder, f"layers.{number}"
        normed = self.norm(hidden, f"{name}.input_layernorm")
        attended = self._attend(normed, f"{name}.self_attn", self.kinds[number])
        hidden = builder.add(hidden, self.norm(attended, f"{name}.post_attention_layernorm"))
        normed = self.norm(hidden, f"{name}.pre_feedforward_layernorm")
        inner = gated_feed_forward(builder, self._config | self._activation, normed, f"{name}.mlp")
        return builder.add(hidden, self.norm(inner, f"{name}.post_feedforward_layernorm"))

    def _attend(self, hidden: str, name: str, kind: str) -> str:
        builder, attention, turn, heads = self._builder, self._attentions[kind], self._turns[kind], self._heads
        inner, narrow, bias = heads.hidden_size, heads.key_count * heads.size, bool(self._config.get("attention_bias"))
        queries = attention.queries(builder.linear(hidden, f"{name}.q_proj", (inner, self.width), bias=bias))
        keys = attention.keys(builder.linear(hidden, f"{name}.k_proj", (narrow, self.width), bias=bias))
        values = attention.keys(builder.linear(hidden, f"{name}.v_proj", (narrow, self.width), bias=bias))
        queries, keys = self.norm(queries, f"{name}.q_norm"), self.norm(keys, f"{name}.k_norm")
        context = attention.attend(turn(attention.scaled(queries)), turn(keys), values)
        return builder.linear(context, f"{name}.o_proj", (self.width, inner), bias=bias)

    def _rotary(self, kind: str) -> Rotary:
        """Local layers have a base of their own and are never scaled by the old `rope_scaling`."""
        config, size = self._config, self._heads.size
        if kind == FULL:
            base = float(config.get("rope_theta") or GLOBAL_BASE)
            return Rotary(self._builder, read_frequencies(config, size, base, FULL), size)
        base = float(config.get("rope_local_base_freq") or LOCAL_BASE)
        return Rotary(self._builder, read_frequencies(config | {"rope_scaling": None}, size, base, SLIDING), size)


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states; word vectors are multiplied by the root of the width."""
    check_config(config, "attn_logit_softcapping")
    check_config(config, "is_causal", True)
    words = builder.lookup("embed_tokens.weight", builder.flatten(builder.input("input_ids")))
    layers = _Layers(builder, config)
    hidden = builder.node("Mul", [words, builder.number(math.sqrt(layers.width))])
    builder.state(hidden)
    for number in range(len(layers.kinds)):
        hidden = builder.state(layers(hidden, number))
    return layers.norm(hidden, "norm")


def _kinds(config: Config) -> list[str]:
    """`layer_types`, or global attention in every sixth layer."""
    count = int(require_config(config, "num_hidden_layers"))
    kinds = config.get("layer_types")
    if kinds is None:
        every = int(config.get("sliding_window_pattern") or 6)
        return [SLIDING if (number + 1) % every else FULL for number in range(count)]
    for kind in kinds:
        check_config({"model_type": "gemma3_text", "layer_types": kind}, "layer_types", FULL, SLIDING)
    return list(kinds)[:count]


GEMMA3 = Architecture(encode, score_last, ("model.",))
