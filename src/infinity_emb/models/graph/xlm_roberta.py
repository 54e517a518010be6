"""XLM-RoBERTa in both layouts: that of transformers, and the one Jina's rerankers are stored in.

The second computes the same with other names and with queries, keys and values in one matrix
(`jinaai/xlm-roberta-flash-implementation`, used by jina-reranker-v2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.bert import encode_roberta, score_roberta
from infinity_emb.models.graph.positions import counted_positions

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

# fields of the second layout that change the result, and the values that are computed
_KNOWN: dict[str, tuple[Any, ...]] = {
    "position_embedding_type": ("absolute",),
    "lora_adaptations": ([],),
    "use_qk_norm": (False,),
    "hidden_act": ("gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"),
}


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states of either layout."""
    if not builder.tensors.has("emb_ln.weight"):
        return encode_roberta(builder, config)
    for field, known in _KNOWN.items():
        check_config(config, field, *known)
    width, heads = int(require_config(config, "hidden_size")), int(require_config(config, "num_attention_heads"))
    hidden = builder.layer_norm(_embeddings(builder, config), "emb_ln", _epsilon(config))
    attention = SegmentAttention(builder, Heads(heads, width // heads), segment_mask(builder))
    for number in range(int(require_config(config, "num_hidden_layers"))):
        hidden = _layer(builder, config, attention, hidden, f"encoder.layers.{number}")
    return hidden


def _embeddings(builder: GraphBuilder, config: Config) -> str:
    positions = counted_positions(builder, int(require_config(config, "pad_token_id")))
    words = builder.lookup("embeddings.word_embeddings.weight", builder.flatten(builder.input("input_ids")))
    total = builder.add(words, builder.lookup("embeddings.position_embeddings.weight", positions))
    types = int(config.get("type_vocab_size", 1))
    if types == 1:  # one row, added to every token
        return builder.add(total, builder.weight("embeddings.token_type_embeddings.weight"))
    if types > 1:
        numbers = builder.flatten(builder.input("token_type_ids"))
        return builder.add(total, builder.lookup("embeddings.token_type_embeddings.weight", numbers))
    return total


def _layer(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    together = builder.linear(hidden, f"{name}.mixer.Wqkv", (3 * width, width))
    query, rest = builder.split(together, width, 2 * width)
    context = attention(query, *builder.split(rest, width, width))
    attended = builder.linear(context, f"{name}.mixer.out_proj", (width, width))
    hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.norm1", _epsilon(config))
    expanded = builder.linear(hidden, f"{name}.mlp.fc1", (inner, width))
    activated = builder.activation(expanded, str(config.get("hidden_act", "gelu")))
    contracted = builder.linear(activated, f"{name}.mlp.fc2", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.norm2", _epsilon(config))


def _epsilon(config: Config) -> float:
    return float(config.get("layer_norm_eps", 1e-5))


XLM_ROBERTA = Architecture(encode, score_roberta, ("roberta.",))
