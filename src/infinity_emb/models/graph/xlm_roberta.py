"""XLM-RoBERTa in both layouts: that of transformers, and the one Jina's rerankers are stored in.

The second computes the same with other names and with queries, keys and values in one matrix
(`jinaai/xlm-roberta-flash-implementation`, used by jina-reranker-v2). It may have rotary positions and adapters for
tasks (jina-embeddings-v3, Sturua et al. 2024).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.models.graph.adapters import Adapters
from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.bert import encode_roberta, score_roberta
from infinity_emb.models.graph.frequencies import Frequencies, plain
from infinity_emb.models.graph.positions import counted_positions
from infinity_emb.models.graph.rotary import Rotary, attend_together

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

# fields of the second layout that change the result, and the values that are computed
_KNOWN: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute", "rotary"),
    "use_qk_norm": (False,),
    "hidden_act": ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"),
}


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states of either layout."""
    if not builder.tensors.has("emb_ln.weight"):
        check_config(config, "position_embedding_type", "absolute")
        check_config(config, "lora_adaptations", [])
        return encode_roberta(builder, config)
    for field, known in _KNOWN.items():
        check_config(config, field, *known)
    layers = _Layers(builder, config)
    hidden = builder.state(builder.layer_norm(layers.embeddings(), "emb_ln", layers.epsilon))
    for number in range(int(require_config(config, "num_hidden_layers"))):
        hidden = builder.state(layers(hidden, f"encoder.layers.{number}"))
    return hidden


class _Layers:
    """What all layers of the second layout share."""

    def __init__(self, builder: GraphBuilder, config: Config) -> None:
        self._builder, self._config = builder, config
        self._adapters = Adapters(builder, config)
        self._width = int(require_config(config, "hidden_size"))
        heads = int(require_config(config, "num_attention_heads"))
        size = self._width // heads
        self._attention = SegmentAttention(builder, Heads(heads, size), segment_mask(builder))
        self._turn = None
        if config.get("position_embedding_type") == "rotary":
            self._turn = Rotary(
                builder, Frequencies(plain(float(config.get("rotary_emb_base") or 10000.0), size)), size
            )
        self.epsilon = float(config.get("layer_norm_eps", 1e-5))

    def embeddings(self) -> str:
        """Words, types, and positions unless they are rotary."""
        builder, adapters, width = self._builder, self._adapters, self._width
        ids = builder.flatten(builder.input("input_ids"))
        total = adapters.lookup("embeddings.word_embeddings", ids, width)
        if self._turn is None:
            positions = counted_positions(builder, int(require_config(self._config, "pad_token_id")))
            total = builder.add(total, adapters.lookup("embeddings.position_embeddings", positions, width))
        types = int(self._config.get("type_vocab_size", 1))
        if types < 1:
            return total
        # a table of one row is added to every token
        numbers = builder.flatten(builder.input("token_type_ids")) if types > 1 else None
        return builder.add(total, adapters.lookup("embeddings.token_type_embeddings", numbers, width))

    def __call__(self, hidden: str, name: str) -> str:
        """One layer."""
        builder, linear = self._builder, self._adapters.linear
        width, inner = self._width, int(require_config(self._config, "intermediate_size"))
        together = linear(hidden, f"{name}.mixer.Wqkv", (3 * width, width))
        attended = linear(self._attend(together), f"{name}.mixer.out_proj", (width, width))
        hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.norm1", self.epsilon)
        expanded = linear(hidden, f"{name}.mlp.fc1", (inner, width))
        activated = builder.activation(expanded, str(self._config.get("hidden_act", "gelu")))
        contracted = linear(activated, f"{name}.mlp.fc2", (width, inner))
        return builder.layer_norm(builder.add(contracted, hidden), f"{name}.norm2", self.epsilon)

    def _attend(self, together: str) -> str:
        if self._turn is not None:
            return attend_together(self._builder, self._attention, together, self._turn)
        query, rest = self._builder.split(together, self._width, 2 * self._width)
        return self._attention(query, *self._builder.split(rest, self._width, self._width))


XLM_ROBERTA = Architecture(encode, score_roberta, ("roberta.",))
