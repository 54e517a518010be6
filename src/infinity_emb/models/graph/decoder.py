"""Decoders used as embedders and as judges: Llama, Mistral, Qwen2, Qwen3 and the first Gemma.

Pre-norm with RMS norm, rotary positions, shared key heads, gated feed-forward. Sources: Touvron et al. 2023; the
modelling files of transformers 5 for the fields of config.json and the names of tensors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, attention_mask
from infinity_emb.models.graph.frequencies import read_frequencies
from infinity_emb.models.graph.heads import last_real_token
from infinity_emb.models.graph.rotary import Rotary

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.models.graph.builder import GraphBuilder

FULL, SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, slots=True)
class Traits:
    """What tells the families apart.

    Attributes:
        windows: Config → tokens each layer sees including its own, None for all; one entry a layer.
        biases: Config → whether (queries, keys and values) and (the output) have a bias.
        norm_heads: Queries and keys are normalised head by head.
        causal: A token sees only those before it, unless `is_causal` says otherwise.
        head_size: Where config.json names none; None for hidden size by heads.
        epsilon: Of the norms, where config.json names none.
        norm_offset: Added to the weights of the norms, which are stored without it.
        scaled: Word vectors are multiplied by the root of the width.
        activation: Of the feed-forward, whatever config.json says; None is what it says.
    """

    windows: Callable[[Config], list[int | None]]
    biases: Callable[[Config], tuple[bool, bool]]
    norm_heads: bool = False
    causal: bool = True
    head_size: int | None = None
    epsilon: float = 1e-6
    norm_offset: float = 0.0
    scaled: bool = False
    activation: str | None = None


class _Layers:
    """What all layers of a checkpoint share."""

    def __init__(self, builder: GraphBuilder, config: Config, traits: Traits) -> None:
        self._builder, self._config, self._traits = builder, config, traits
        self.width = int(require_config(config, "hidden_size"))
        count = int(require_config(config, "num_attention_heads"))
        size = int(config.get("head_dim") or traits.head_size or self.width // count)
        self._heads = Heads(count, size, int(config.get("num_key_value_heads") or count))
        self._epsilon = float(config.get("rms_norm_eps") or traits.epsilon)
        self._turn = Rotary(builder, read_frequencies(config, size, 10000.0), size)
        causal = traits.causal and config.get("is_causal") is not False
        self.windows = traits.windows(config)
        self._attentions = {
            window: SegmentAttention(
                builder,
                self._heads,
                # where it looks both ways, the reference counts the window without the token itself
                attention_mask(builder, causal=causal, reach=window - 1 if causal and window is not None else window),
            )
            for window in dict.fromkeys(self.windows)
        }

    def norm(self, value: str, name: str) -> str:
        """RMS norm."""
        return self._builder.rms_norm(value, name, self._epsilon, offset=self._traits.norm_offset)

    def __call__(self, hidden: str, number: int) -> str:
        """One layer."""
        name = f"layers.{number}"
        attended = self._attend(self.norm(hidden, f"{name}.input_layernorm"), f"{name}.self_attn", self.windows[number])
        hidden = self._builder.add(hidden, attended)
        normed = self.norm(hidden, f"{name}.post_attention_layernorm")
        return self._builder.add(hidden, self._feed_forward(normed, f"{name}.mlp"))

    def _attend(self, hidden: str, name: str, window: int | None) -> str:
        builder, attention, heads = self._builder, self._attentions[window], self._heads
        inner, narrow = heads.hidden_size, heads.key_count * heads.size
        bias, output_bias = self._traits.biases(self._config)
        queries = attention.queries(builder.linear(hidden, f"{name}.q_proj", (inner, self.width), bias=bias))
        keys = attention.keys(builder.linear(hidden, f"{name}.k_proj", (narrow, self.width), bias=bias))
        values = attention.keys(builder.linear(hidden, f"{name}.v_proj", (narrow, self.width), bias=bias))
        if self._traits.norm_heads:
            queries, keys = self.norm(queries, f"{name}.q_norm"), self.norm(keys, f"{name}.k_norm")
        context = attention.attend(self._turn(attention.scaled(queries)), self._turn(keys), values)
        return builder.linear(context, f"{name}.o_proj", (self.width, inner), bias=output_bias)

    def _feed_forward(self, hidden: str, name: str) -> str:
        bias, act = bool(self._config.get("mlp_bias")), self._traits.activation
        config = self._config | {"hidden_act": act} if act else self._config
        return gated_feed_forward(self._builder, config, hidden, name, bias=bias)


def gated_feed_forward(builder: GraphBuilder, config: Config, hidden: str, name: str, *, bias: bool = False) -> str:
    """`down(act(gate(x)) · up(x))`, Shazeer 2020."""
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    act = str(config.get("hidden_act") or "silu")
    gate = builder.activation(builder.linear(hidden, f"{name}.gate_proj", (inner, width), bias=bias), act)
    value = builder.linear(hidden, f"{name}.up_proj", (inner, width), bias=bias)
    return builder.linear(builder.node("Mul", [gate, value]), f"{name}.down_proj", (width, inner), bias=bias)


def score_last(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """One linear layer without bias on the last token that is not padding."""
    last = last_real_token(builder, config.get("pad_token_id"))
    width = int(require_config(config, "hidden_size"))
    return builder.linear(builder.gather(hidden, last), "score", (labels, width), bias=False)


def architecture(traits: Traits) -> Architecture:
    """A family of decoders."""

    def encode(builder: GraphBuilder, config: Config) -> str:
        check_config(config, "use_bidirectional_attention", False)
        words = builder.lookup("embed_tokens.weight", builder.flatten(builder.input("input_ids")))
        layers = _Layers(builder, config, traits)
        hidden = words
        if traits.scaled:
            hidden = builder.node("Mul", [words, builder.number(math.sqrt(layers.width))])
        builder.state(hidden)
        for number in range(len(layers.windows)):
            hidden = builder.state(layers(hidden, number))
        return layers.norm(hidden, "norm")

    return Architecture(encode, score_last, ("model.",))


def _layer_count(config: Config) -> int:
    return int(require_config(config, "num_hidden_layers"))


def _no_windows(config: Config) -> list[int | None]:
    return [None] * _layer_count(config)


def _one_window(config: Config) -> list[int | None]:
    """Mistral: the same window everywhere; 4096 where config.json does not name it, none where it is null."""
    check_config(config, "layer_types", None)
    window = config.get("sliding_window", 4096)
    return [None if window is None else int(window)] * _layer_count(config)


def _late_windows(config: Config) -> list[int | None]:
    """Qwen: from layer `max_window_layers` on, if `use_sliding_window`; or as `layer_types` says."""
    count = _layer_count(config)
    window = config.get("sliding_window", 4096) if config.get("use_sliding_window") else None
    kinds = config.get("layer_types")
    if kinds is None:
        first = int(config.get("max_window_layers", 28))
        kinds = [SLIDING if number >= first else FULL for number in range(count)]
    for kind in kinds:
        check_config({"model_type": config.get("model_type"), "layer_types": kind}, "layer_types", FULL, SLIDING)
    return [int(window) if kind == SLIDING and window is not None else None for kind in kinds[:count]]


def _as_named(config: Config) -> tuple[bool, bool]:
    bias = bool(config.get("attention_bias"))
    return bias, bias


LLAMA = architecture(Traits(_no_windows, _as_named))
LLAMA_BOTH_WAYS = architecture(Traits(_no_windows, _as_named, causal=False, epsilon=1e-5))
MISTRAL = architecture(Traits(_one_window, lambda _: (False, False)))
QWEN2 = architecture(Traits(_late_windows, lambda _: (True, False)))
QWEN3 = architecture(Traits(_late_windows, _as_named, norm_heads=True, head_size=128))
# "gelu" in its files means the tanh approximation, which was trained; see the reference's configuration.
GEMMA = architecture(
    Traits(_no_windows, _as_named, head_size=256, norm_offset=1.0, scaled=True, activation="gelu_pytorch_tanh")
)
