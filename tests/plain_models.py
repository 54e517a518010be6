"""Families whose reference code lives in remote repositories, written out in plain torch from the papers' formulas.

One text at a time, no batches, no shared code with the graphs: `states(weights, config, ids, types)` → `[tokens, width]`.
`shapes(config)` names the tensors of a checkpoint.
"""

from __future__ import annotations

import math

import torch
from torch.nn.functional import gelu, layer_norm, linear, softmax

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "intermediate_size": 48,
    "vocab_size": 99,
    "type_vocab_size": 2,
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-12,
}
JINA = SIZES | {
    "model_type": "bert",
    "position_embedding_type": "alibi",
    "feed_forward_type": "geglu",
    "hidden_size": 36,
}
NOMIC_MOE = {
    "model_type": "nomic_bert",
    "n_embd": 32,
    "n_layer": 4,
    "n_head": 4,
    "n_inner": 48,
    "vocab_size": 99,
    "type_vocab_size": 1,
    "layer_norm_epsilon": 1e-5,
    "activation_function": "gelu",
    "qkv_proj_bias": True,
    "mlp_fc1_bias": True,
    "mlp_fc2_bias": True,
    "rotary_emb_fraction": 1.0,
    "rotary_emb_base": 10000,
    "rotary_emb_interleaved": False,
    "prenorm": False,
    "num_experts": 5,
    "moe_top_k": 2,
    "moe_every_n_layers": 2,
    "n_positions": 512,
}


def _linear(name, out, into, *, bias=True):
    return {f"{name}.weight": (out, into)} | ({f"{name}.bias": (out,)} if bias else {})


def _norm(name, width):
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def jina_shapes(config, *, post_norm):
    width, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], width),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], width),
        **_norm("embeddings.LayerNorm", width),
    }
    for number in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            shapes |= _linear(f"{name}.attention.{part}", width, width)
        shapes |= _norm(f"{name}.attention.output.LayerNorm", width)
        if post_norm:
            for part in ("attention.self.layer_norm_q", "attention.self.layer_norm_k", "layer_norm_1", "layer_norm_2"):
                shapes |= _norm(f"{name}.{part}", width)
            shapes |= _linear(f"{name}.mlp.up_gated_layer", 2 * inner, width, bias=False)
            shapes |= _linear(f"{name}.mlp.down_layer", width, inner)
        else:
            shapes |= _linear(f"{name}.mlp.gated_layers", 2 * inner, width, bias=False)
            shapes |= _linear(f"{name}.mlp.wo", width, inner) | _norm(f"{name}.mlp.layernorm", width)
    return shapes


def jina_states(weights, config, ids, types):
    def norm(value, name):
        return layer_norm(value, value.shape[-1:], *_pair(weights, name), config["layer_norm_eps"])

    inner = config["intermediate_size"]
    hidden = (
        weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][types]
    )
    hidden = norm(hidden, "embeddings.LayerNorm")
    places = torch.arange(len(ids))
    slopes = torch.tensor(_slopes(config["num_attention_heads"]))
    bias = -slopes[:, None, None] * (places[:, None] - places[None]).abs()
    for number in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{number}"
        query, key, value = (
            linear(hidden, *_pair(weights, f"{name}.attention.self.{part}")) for part in ("query", "key", "value")
        )
        post_norm = f"{name}.layer_norm_1.weight" in weights
        if post_norm:
            query = norm(query, f"{name}.attention.self.layer_norm_q")
            key = norm(key, f"{name}.attention.self.layer_norm_k")
        context = _attend(query, key, value, config["num_attention_heads"], bias)
        attended = linear(context, *_pair(weights, f"{name}.attention.output.dense"))
        attended = norm(attended + hidden, f"{name}.attention.output.LayerNorm")
        if post_norm:
            hidden = norm(attended + hidden, f"{name}.layer_norm_1")
            both = linear(hidden, weights[f"{name}.mlp.up_gated_layer.weight"])
            down = linear(both[:, :inner] * gelu(both[:, inner:]), *_pair(weights, f"{name}.mlp.down_layer"))
            hidden = norm(hidden + down, f"{name}.layer_norm_2")
        else:
            both = linear(attended, weights[f"{name}.mlp.gated_layers.weight"])
            down = linear(gelu(both[:, :inner]) * both[:, inner:], *_pair(weights, f"{name}.mlp.wo"))
            hidden = norm(attended + down, f"{name}.mlp.layernorm")
    return hidden


def nomic_moe_shapes(config):
    width, inner, experts = config["n_embd"], config["n_inner"], config["num_experts"]
    shapes = {
        "embeddings.word_embeddings.weight": (config["vocab_size"], width),
        "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], width),
        **_norm("emb_ln", width),
    }
    for number in range(config["n_layer"]):
        name = f"encoder.layers.{number}"
        shapes |= _linear(f"{name}.attn.Wqkv", 3 * width, width) | _linear(f"{name}.attn.out_proj", width, width)
        shapes |= _norm(f"{name}.norm1", width) | _norm(f"{name}.norm2", width)
        if number % config["moe_every_n_layers"] == 1:
            shapes |= _linear(f"{name}.mlp.router.layer", experts, width, bias=False)
            shapes |= {f"{name}.mlp.experts.mlp.{part}": (experts * inner, width) for part in ("w1", "w2")}
            shapes[f"{name}.mlp.experts.bias"] = (width,)
        else:
            shapes |= _linear(f"{name}.mlp.fc1", inner, width) | _linear(f"{name}.mlp.fc2", width, inner)
    return shapes


def nomic_moe_states(weights, config, ids, types):
    def norm(value, name):
        return layer_norm(value, value.shape[-1:], *_pair(weights, name), config["layer_norm_epsilon"])

    hidden = (
        weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.token_type_embeddings.weight"][types]
    )
    hidden = norm(hidden, "emb_ln")
    for number in range(config["n_layer"]):
        name = f"encoder.layers.{number}"
        query, key, value = linear(hidden, *_pair(weights, f"{name}.attn.Wqkv")).chunk(3, dim=-1)
        query, key = (_turn(each, config["n_head"], config["rotary_emb_base"]) for each in (query, key))
        context = _attend(query, key, value, config["n_head"], 0.0)
        hidden = norm(hidden + linear(context, *_pair(weights, f"{name}.attn.out_proj")), f"{name}.norm1")
        if f"{name}.mlp.fc1.weight" in weights:
            inner = gelu(linear(hidden, *_pair(weights, f"{name}.mlp.fc1")))
            inner = linear(inner, *_pair(weights, f"{name}.mlp.fc2"))
        else:
            inner = torch.stack([_experts(weights, config, token, f"{name}.mlp") for token in hidden])
        hidden = norm(hidden + inner, f"{name}.norm2")
    return hidden


def _experts(weights, config, token, name):
    """One token through its preferred experts; their weights are used as the softmax gave them."""
    scores = softmax(linear(token, weights[f"{name}.router.layer.weight"]), dim=-1)
    up, down = (weights[f"{name}.experts.mlp.{part}"].chunk(config["num_experts"]) for part in ("w1", "w2"))
    best = scores.argsort(descending=True)[: config["moe_top_k"]].tolist()
    return sum(scores[each] * (gelu(up[each] @ token) @ down[each]) for each in best) + weights[f"{name}.experts.bias"]


def _attend(query, key, value, heads, bias):
    query, key, value = (each.unflatten(-1, (heads, -1)).transpose(0, 1) for each in (query, key, value))
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1]) + bias
    return (softmax(scores, dim=-1) @ value).transpose(0, 1).flatten(1)


def _turn(value, heads, base):
    """Each pair (i, i + half) is a complex number that turns by position times frequency."""
    value = value.unflatten(-1, (heads, -1))
    half = value.shape[-1] // 2
    speeds = 1.0 / base ** (torch.arange(half) / half)
    angles = (torch.arange(len(value))[:, None] * speeds)[:, None]
    turned = torch.complex(value[..., :half], value[..., half:]) * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], dim=-1).flatten(1)


def _slopes(heads):
    """Press et al. 2022: 1/2, 1/4 … for eight heads; for other counts the series of the powers of two around it."""
    if math.log2(heads).is_integer():
        return [2 ** (-8 * (number + 1) / heads) for number in range(heads)]
    below = 2 ** math.floor(math.log2(heads))
    return _slopes(below) + _slopes(2 * below)[::2][: heads - below]


def _pair(weights, name):
    return weights[f"{name}.weight"], weights[f"{name}.bias"]
