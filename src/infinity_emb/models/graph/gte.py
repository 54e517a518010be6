"""GTE of 2024 (`model_type` "new", "gte" in transformers 5): BERT with rotary positions and a gated feed-forward.

Sources: Zhang et al. 2024 (mGTE); transformers 5 for the names; the NTK scaling of "new" from
https://kexue.fm/archives/9706, equations 6 and 10 to 13, which its own code follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.bert import score_pooled
from infinity_emb.models.graph.frequencies import Frequencies, plain, read_frequencies
from infinity_emb.models.graph.rotary import Rotary, attend_together

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder


def encode_new(builder: GraphBuilder, config: Config) -> str:
    """Token states of a checkpoint with its own code."""
    check_config(config, "position_embedding_type", "rope")
    check_config(config, "layer_norm_type", "layer_norm")
    check_config(config, "logn_attention_scale", False)
    check_config(config, "pack_qkv", True)
    return _encode(builder, config, _ntk(config, base=10000.0))


def encode_gte(builder: GraphBuilder, config: Config) -> str:
    """Token states of a checkpoint written for transformers 5."""
    return _encode(builder, config, read_frequencies(config, _head_size(config), 160000.0))


def _encode(builder: GraphBuilder, config: Config, frequencies: Frequencies) -> str:
    count, size = int(require_config(config, "num_attention_heads")), _head_size(config)
    hidden = builder.lookup("embeddings.word_embeddings.weight", builder.flatten(builder.input("input_ids")))
    if int(config.get("type_vocab_size", 1)) > 0:
        types = builder.flatten(builder.input("token_type_ids"))
        hidden = builder.add(hidden, builder.lookup("embeddings.token_type_embeddings.weight", types))
    hidden = builder.layer_norm(hidden, "embeddings.LayerNorm", _epsilon(config))
    attention = SegmentAttention(builder, Heads(count, size), segment_mask(builder))
    turn = Rotary(builder, frequencies, size)
    for number in range(int(require_config(config, "num_hidden_layers"))):
        name = f"encoder.layer.{number}"
        together = builder.linear(hidden, f"{name}.attention.qkv_proj", (3 * count * size, count * size))
        context = attend_together(builder, attention, together, turn)
        attended = builder.linear(context, f"{name}.attention.o_proj", (count * size, count * size))
        hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.attn_ln", _epsilon(config))
        inner = _feed_forward(builder, config, hidden, f"{name}.mlp")
        hidden = builder.layer_norm(builder.add(inner, hidden), f"{name}.mlp_ln", _epsilon(config))
    return hidden


def _feed_forward(builder: GraphBuilder, config: Config, hidden: str, name: str) -> str:
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    both = builder.linear(hidden, f"{name}.up_gate_proj", (2 * inner, width), bias=False)
    value, gate = builder.split(both, inner, inner)
    activated = builder.activation(gate, str(config.get("hidden_act", "gelu")))
    return builder.linear(builder.node("Mul", [activated, value]), f"{name}.down_proj", (width, inner))


def _ntk(config: Config, base: float) -> Frequencies:
    """A larger base and, from the factor, a stretch: even (6) or growing with the pair (10 to 13, `mixed_b`)."""
    size, base = _head_size(config), float(config.get("rope_theta") or base)
    scaling = config.get("rope_scaling")
    if not scaling:
        return Frequencies(plain(base, size))
    kind = {"model_type": "new", "rope_scaling.type": scaling.get("type")}
    check_config(kind, "rope_scaling.type", "ntk")
    factor, exponent = float(scaling.get("factor", 1.0)), scaling.get("mixed_b")
    if exponent is None:
        return Frequencies(plain(base * factor, size) / np.float32(factor ** (2 / size)))
    slope = np.log(factor) / (size / 2) ** exponent
    stretch = np.exp(slope * np.arange(1, size // 2 + 1) ** float(exponent))
    return Frequencies((plain(base, size) / stretch).astype(np.float32))


def _head_size(config: Config) -> int:
    return int(require_config(config, "hidden_size")) // int(require_config(config, "num_attention_heads"))


def _epsilon(config: Config) -> float:
    return float(config.get("layer_norm_eps", 1e-12))


NEW = Architecture(encode_new, score_pooled, ("new.",))
GTE = Architecture(encode_gte, score_pooled, ("gte.", "new."))
