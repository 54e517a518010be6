"""BERT and its siblings: RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA. Post-norm encoder with absolute positions.

Sources: Devlin et al. 2018; the modelling files of transformers 5 for the names of tensors and the heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import NotComputedError
from infinity_emb.models.graph.architecture import Architecture, Config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.positions import counted_positions

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

DEFAULT_PADDING_ID = 1  # of transformers' RobertaConfig


def encode_bert(builder: GraphBuilder, config: Config) -> str:
    """Token states of BERT; positions start at 0."""
    return _layers(builder, config, _embeddings(builder, config, _from_zero(builder)))


def encode_roberta(builder: GraphBuilder, config: Config) -> str:
    """Token states of RoBERTa; positions start behind the padding index."""
    padding_id = config.get("pad_token_id")
    positions = counted_positions(builder, DEFAULT_PADDING_ID if padding_id is None else int(padding_id))
    return _layers(builder, config, _embeddings(builder, config, positions))


def encode_electra(builder: GraphBuilder, config: Config) -> str:
    """Token states of ELECTRA; embeddings may be narrower than the layers."""
    hidden = _embeddings(builder, config, _from_zero(builder))
    if builder.tensors.has("embeddings_project.weight"):
        hidden = builder.linear(hidden, "embeddings_project")
    return _layers(builder, config, hidden)


def score_pooled(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """BERT's head: tanh pooler on the first token, then one linear layer."""
    width = int(require_config(config, "hidden_size"))
    first = builder.gather(hidden, builder.input("first_index"))
    pooled = builder.node("Tanh", [builder.linear(first, "pooler.dense", (width, width))])
    return builder.linear(pooled, "classifier", (labels, width))


def score_roberta(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """RoBERTa's head: dense and tanh on the first token, then one linear layer."""
    return _two_layer_head(builder, config, hidden, labels, "tanh")


def score_electra(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """ELECTRA's head: dense and GELU on the first token, then one linear layer."""
    return _two_layer_head(builder, config, hidden, labels, "gelu")


def _two_layer_head(builder: GraphBuilder, config: Config, hidden: str, labels: int, activation: str) -> str:
    width = int(require_config(config, "hidden_size"))
    first = builder.gather(hidden, builder.input("first_index"))
    inner = builder.activation(builder.linear(first, "classifier.dense", (width, width)), activation)
    return builder.linear(inner, "classifier.out_proj", (labels, width))


def _from_zero(builder: GraphBuilder) -> str:
    return builder.flatten(builder.input("position_ids"))


def _embeddings(builder: GraphBuilder, config: Config, positions: str) -> str:
    """Word, position and type vectors, summed and normalised: `[slots, embedding]`."""
    kind = config.get("position_embedding_type") or "absolute"
    if kind != "absolute":
        raise NotComputedError(
            f"position_embedding_type {kind!r} is not supported by the graph builder (only 'absolute' is). "
            "Use --engine torch for this model.",
            param="config.json: position_embedding_type",
        )
    words = builder.gather(
        builder.weight("embeddings.word_embeddings.weight"), builder.flatten(builder.input("input_ids"))
    )
    places = builder.gather(builder.weight("embeddings.position_embeddings.weight"), positions)
    types_table = builder.weight("embeddings.token_type_embeddings.weight")
    if int(config.get("type_vocab_size", 2)) > 1:
        types = builder.gather(types_table, builder.flatten(builder.input("token_type_ids")))
    else:
        types = types_table  # one row, added to every token
    total = builder.add(words, types, places)
    return builder.layer_norm(total, "embeddings.LayerNorm", _epsilon(config))


def _layers(builder: GraphBuilder, config: Config, hidden: str) -> str:
    width = int(require_config(config, "hidden_size"))
    heads = int(require_config(config, "num_attention_heads"))
    attention = SegmentAttention(builder, Heads(heads, width // heads), segment_mask(builder))
    builder.state(hidden)
    for number in range(int(require_config(config, "num_hidden_layers"))):
        hidden = builder.state(_layer(builder, config, attention, hidden, f"encoder.layer.{number}"))
    return hidden


def _layer(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, name: str) -> str:
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    epsilon = _epsilon(config)
    query, key, value = (
        builder.linear(hidden, f"{name}.attention.self.{part}", (width, width)) for part in ("query", "key", "value")
    )
    context = attention(query, key, value)
    attended = builder.linear(context, f"{name}.attention.output.dense", (width, width))
    hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.attention.output.LayerNorm", epsilon)
    expanded = builder.linear(hidden, f"{name}.intermediate.dense", (inner, width))
    activated = builder.activation(expanded, str(config.get("hidden_act", "gelu")))
    contracted = builder.linear(activated, f"{name}.output.dense", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.output.LayerNorm", epsilon)


def _epsilon(config: Config) -> float:
    return float(config.get("layer_norm_eps", 1e-12))


BERT = Architecture(encode_bert, score_pooled, ("bert.", "roberta."))
ROBERTA = Architecture(encode_roberta, score_roberta, ("roberta.", "bert."))
ELECTRA = Architecture(encode_electra, score_electra, ("electra.",))
