"""NomicBERT: BERT with rotary positions and a gated feed-forward; in v2 every second layer is a mixture of experts.

Sources: Nussbaum et al. 2024, Nussbaum and Duderstadt 2025; transformers 5 for v1, with the original tensor names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.bert import score_pooled
from infinity_emb.models.graph.experts import mixture
from infinity_emb.models.graph.frequencies import Frequencies, plain, read_frequencies
from infinity_emb.models.graph.rotary import Rotary, attend_together

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

# how the original code spells the fields of transformers 5
_SPELLINGS = {
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_inner": "intermediate_size",
    "n_layer": "num_hidden_layers",
    "layer_norm_epsilon": "layer_norm_eps",
}
_GATES = {"swiglu": "silu", "geglu": "gelu", "glu": "sigmoid"}
# fields of the original code that change the result, and the values that are computed
_KNOWN: dict[str, tuple[Any, ...]] = {
    "prenorm": (False,),
    "parallel_block": (False,),
    "causal": (False,),
    "use_rms_norm": (False,),
    "scale_attn_weights": (True,),
    "scale_attn_by_inverse_layer_idx": (False,),
    "rotary_emb_interleaved": (False,),
    "rotary_emb_scale_base": (),
    "rotary_scaling_factor": (),
    "expert_choice_router": (False,),
    "moe_normalize_expert_weights": (False,),
    "num_shared_experts": (0,),
    "ffn_div": (1,),
}


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states."""
    for field, known in _KNOWN.items():
        check_config(config, field, *known)
    layers = _Layers(builder, _respelt(config))
    hidden = builder.lookup("embeddings.word_embeddings.weight", builder.flatten(builder.input("input_ids")))
    if int(config.get("type_vocab_size", 2)) > 0:
        types = builder.flatten(builder.input("token_type_ids"))
        hidden = builder.add(hidden, builder.lookup("embeddings.token_type_embeddings.weight", types))
    hidden = layers.norm(hidden, "emb_ln")
    for number in range(layers.count):
        hidden = layers(hidden, number)
    return hidden


def score(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """BERT's head."""
    return score_pooled(builder, _respelt(config), hidden, labels)


class _Layers:
    """What all layers of a checkpoint share."""

    def __init__(self, builder: GraphBuilder, config: Config) -> None:
        self._builder, self._config = builder, config
        self._width = int(require_config(config, "hidden_size"))
        self._inner = int(config.get("intermediate_size") or 4 * self._width)
        self.count = int(require_config(config, "num_hidden_layers"))
        heads = int(require_config(config, "num_attention_heads"))
        size = int(config.get("head_dim") or self._width // heads)
        check_config(config, "head_dim", self._width // heads)
        self._attention = SegmentAttention(builder, Heads(heads, size), segment_mask(builder))
        self._turn = Rotary(builder, _frequencies(config, size), size)

    def norm(self, value: str, name: str) -> str:
        """Layer normalisation."""
        return self._builder.layer_norm(value, name, float(self._config.get("layer_norm_eps", 1e-12)))

    def __call__(self, hidden: str, number: int) -> str:
        """One layer."""
        builder, width, name = self._builder, self._width, f"encoder.layers.{number}"
        bias = bool(self._config.get("qkv_proj_bias", False))
        together = builder.linear(hidden, f"{name}.attn.Wqkv", (3 * width, width), bias=bias)
        context = attend_together(builder, self._attention, together, self._turn)
        attended = builder.linear(context, f"{name}.attn.out_proj", (width, width), bias=bias)
        hidden = self.norm(builder.add(attended, hidden), f"{name}.norm1")
        inner = self._feed_forward(hidden, f"{name}.mlp", number)
        return self.norm(builder.add(inner, hidden), f"{name}.norm2")

    def _feed_forward(self, hidden: str, name: str, number: int) -> str:
        every = int(self._config.get("moe_every_n_layers") or 0)
        if every > 0 and number % every == 1:
            return mixture(self._builder, self._config, hidden, name)
        builder, config, width, inner = self._builder, self._config, self._width, self._inner
        wide, narrow = bool(config.get("mlp_fc1_bias", False)), bool(config.get("mlp_fc2_bias", False))
        activation = str(config.get("activation_function") or "gated")
        if activation in _GATES or activation == "gated":
            gate = builder.linear(hidden, f"{name}.fc12", (inner, width), bias=wide)
            gate = builder.activation(gate, _GATES.get(activation, str(config.get("hidden_act", "silu"))))
            value = builder.linear(hidden, f"{name}.fc11", (inner, width), bias=wide)
            activated = builder.node("Mul", [gate, value])
        else:
            activated = builder.activation(builder.linear(hidden, f"{name}.fc1", (inner, width), bias=wide), activation)
        return builder.linear(activated, f"{name}.fc2", (width, inner), bias=narrow)


def _frequencies(config: Config, size: int) -> Frequencies:
    """The original code names base and share; without a share it would have learnt positions."""
    if "rotary_emb_fraction" not in config:
        return read_frequencies(config, size, 1000.0)
    check_config(config, "rotary_emb_fraction", 1.0)
    return Frequencies(plain(float(config.get("rotary_emb_base") or 10000.0), size))


def _respelt(config: Config) -> Config:
    return {_SPELLINGS.get(name, name): value for name, value in config.items()}


NOMIC_BERT = Architecture(encode, score, ("nomic_bert.", "bert."))
