"""ModernBERT: rotary positions, local and global layers in turn, gated feed-forward, pre-norm (Warner et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, attention_mask
from infinity_emb.models.graph.frequencies import read_frequencies
from infinity_emb.models.graph.heads import mean_of_tokens
from infinity_emb.models.graph.rotary import Rotary, attend_together

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

GLOBAL, LOCAL = "full_attention", "sliding_attention"
BASES = {GLOBAL: ("global_rope_theta", 160000.0), LOCAL: ("local_rope_theta", 10000.0)}


class _Layers:
    """What all layers of a checkpoint share."""

    def __init__(self, builder: GraphBuilder, config: Config) -> None:
        self.builder, self.config = builder, config
        self.width = int(require_config(config, "hidden_size"))
        self.inner = int(require_config(config, "intermediate_size"))
        count = int(require_config(config, "num_attention_heads"))
        self.heads = Heads(count, self.width // count)
        self.kinds = layer_kinds(config)
        reach = int(config.get("local_attention", 128)) // 2
        self.attentions = {
            kind: SegmentAttention(builder, self.heads, attention_mask(builder, reach=reach if kind == LOCAL else None))
            for kind in sorted(set(self.kinds))
        }
        self.turns = {kind: self._rotary(kind) for kind in sorted(set(self.kinds))}

    def norm(self, value: str, name: str) -> str:
        """Layer normalisation, with a bias if `norm_bias` says so."""
        return _norm(self.builder, self.config, value, name)

    def __call__(self, hidden: str, number: int) -> str:
        """One layer."""
        name = f"layers.{number}"
        normed = hidden if number == 0 else self.norm(hidden, f"{name}.attn_norm")
        hidden = self.builder.add(hidden, self._attend(normed, f"{name}.attn", self.kinds[number]))
        return self.builder.add(hidden, self._feed_forward(self.norm(hidden, f"{name}.mlp_norm"), f"{name}.mlp"))

    def _attend(self, hidden: str, name: str, kind: str) -> str:
        builder, width, bias = self.builder, self.width, bool(self.config.get("attention_bias"))
        together = builder.linear(hidden, f"{name}.Wqkv", (3 * width, width), bias=bias)
        context = attend_together(builder, self.attentions[kind], together, self.turns[kind])
        return builder.linear(context, f"{name}.Wo", (width, width), bias=bias)

    def _feed_forward(self, hidden: str, name: str) -> str:
        builder, bias = self.builder, bool(self.config.get("mlp_bias"))
        both = builder.linear(hidden, f"{name}.Wi", (2 * self.inner, self.width), bias=bias)
        gate, value = builder.split(both, self.inner, self.inner)
        activated = builder.activation(gate, str(self.config.get("hidden_activation", "gelu")))
        return builder.linear(
            builder.node("Mul", [activated, value]), f"{name}.Wo", (self.width, self.inner), bias=bias
        )

    def _rotary(self, kind: str) -> Rotary:
        field, base = BASES[kind]
        frequencies = read_frequencies(self.config, self.heads.size, float(self.config.get(field) or base), kind)
        return Rotary(self.builder, frequencies, self.heads.size)


def layer_kinds(config: Config) -> list[str]:
    """`layer_types`, or global attention in every n-th layer."""
    count = int(require_config(config, "num_hidden_layers"))
    if config.get("layer_types") is None:
        every = int(config.get("global_attn_every_n_layers", 3))
        return [LOCAL if number % every else GLOBAL for number in range(count)]
    kinds = [str(kind) for kind in config["layer_types"]][:count]
    for kind in kinds:
        check_config({"model_type": config.get("model_type"), "layer_types": kind}, "layer_types", GLOBAL, LOCAL)
    return kinds


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states."""
    words = builder.lookup("embeddings.tok_embeddings.weight", builder.flatten(builder.input("input_ids")))
    layers = _Layers(builder, config)
    hidden = layers.norm(words, "embeddings.norm")
    builder.state(hidden)
    for number in range(len(layers.kinds)):
        hidden = builder.state(layers(hidden, number))
    return layers.norm(hidden, "final_norm")


def score(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """Pooling of `classifier_pooling`, dense, activation and norm, then one linear layer."""
    width = int(require_config(config, "hidden_size"))
    check_config(config, "classifier_pooling", "cls", "mean")
    if config.get("classifier_pooling", "cls") == "mean":
        pooled = mean_of_tokens(builder, hidden)
    else:
        pooled = builder.gather(hidden, builder.input("first_index"))
    dense = builder.linear(pooled, "head.dense", (width, width), bias=bool(config.get("classifier_bias")))
    activated = builder.activation(dense, str(config.get("classifier_activation", "gelu")))
    return builder.linear(_norm(builder, config, activated, "head.norm"), "classifier", (labels, width))


def _norm(builder: GraphBuilder, config: Config, value: str, name: str) -> str:
    return builder.layer_norm(value, name, float(config.get("norm_eps", 1e-5)), bias=bool(config.get("norm_bias")))


MODERNBERT = Architecture(encode, score, ("model.",))
