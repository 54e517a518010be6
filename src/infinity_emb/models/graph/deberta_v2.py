"""DeBERTa v2 and v3: attention in which content and relative position meet in both directions (He et al. 2021)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.graph.architecture import Architecture, Config, check_config, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, segment_mask
from infinity_emb.models.graph.convolution import convolve
from infinity_emb.models.graph.relative import distance_index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.models.graph.builder import GraphBuilder


def encode(builder: GraphBuilder, config: Config) -> str:
    """Token states."""
    check_config(config, "conv_kernel_size", 0, 3, 5, 7, 9)
    check_config(config, "conv_groups", 1)
    check_config(config, "attention_head_size", config["hidden_size"] // config["num_attention_heads"])
    embedded = hidden = _embeddings(builder, config)
    attention = _Disentangled(builder, config)
    for number in range(int(require_config(config, "num_hidden_layers"))):
        hidden = _layer(builder, config, attention, hidden, f"encoder.layer.{number}")
        if number == 0 and config.get("conv_kernel_size"):
            hidden = _add_neighbours(builder, config, embedded, hidden)
    return hidden


def score(builder: GraphBuilder, config: Config, hidden: str, labels: int) -> str:
    """Dense and activation on the first token, then one linear layer."""
    width = int(config.get("pooler_hidden_size") or require_config(config, "hidden_size"))
    first = builder.gather(hidden, builder.input("first_index"))
    dense = builder.linear(first, "pooler.dense", (width, width))
    pooled = builder.activation(dense, str(config.get("pooler_hidden_act", "gelu")))
    return builder.linear(pooled, "classifier", (labels, width))


class _Disentangled:
    """Attention with the two position terms; table, indexes and mask are shared by all layers."""

    def __init__(self, builder: GraphBuilder, config: Config) -> None:
        self._builder, self._config = builder, config
        self._width = int(require_config(config, "hidden_size"))
        count = int(require_config(config, "num_attention_heads"))
        size, named = self._width // count, _terms(config)
        # the scale counts the terms even where relative_attention is off and none is added
        self._heads = Heads(count, size, scale=1.0 / math.sqrt(size * (1 + len(named))))
        self._terms = named if config.get("relative_attention") else ()
        self._attention = SegmentAttention(builder, self._heads, segment_mask(builder))
        if self._terms:
            self._span, trained = _span(config)
            self._table = self._positions()
            self._index = self._distances(trained)

    def __call__(self, hidden: str, name: str) -> str:
        """Attend; `[slots, hidden]` → `[slots, heads·size]`."""
        builder, attention = self._builder, self._attention
        query, key, value = (self._linear(hidden, f"{name}.{part}_proj") for part in ("query", "key", "value"))
        queries, keys = attention.queries(attention.scaled(query)), attention.keys(key)
        bias = None
        if "c2p" in self._terms:
            bias = self._content_to_position(queries, name)
        if "p2c" in self._terms:
            other = self._position_to_content(keys, name)
            bias = other if bias is None else builder.add(bias, other)
        return attention.attend(queries, keys, attention.keys(value), bias)

    def _content_to_position(self, queries: str, name: str) -> str:
        """Each query against the key of each distance, then the one of its distance to each key."""
        builder = self._builder
        positions = self._project("key", name)
        queries = builder.node("Transpose", [queries], perm=[0, 2, 1, 3])
        every = builder.node("MatMul", [queries, builder.node("Transpose", [positions], perm=[1, 2, 0])])
        return builder.node("GatherElements", [every, self._index], axis=3)

    def _position_to_content(self, keys: str, name: str) -> str:
        """The query of each distance against each key; buckets are antisymmetric, so the same index serves."""
        builder = self._builder
        positions = self._attention.scaled(self._project("query", name))
        keys = builder.node("Transpose", [keys], perm=[0, 2, 3, 1])
        every = builder.node("MatMul", [builder.node("Transpose", [positions], perm=[1, 0, 2]), keys])
        return builder.node("GatherElements", [every, self._index], axis=2)

    def _project(self, part: str, name: str) -> str:
        """The position table through a projection: `[2·span, heads, size]`."""
        shared = bool(self._config.get("share_att_key"))
        projected = self._linear(self._table, f"{name}.{part}_proj" if shared else f"{name}.pos_{part}_proj")
        return self._builder.node("Reshape", [projected, self._builder.ints(-1, self._heads.count, self._heads.size)])

    def _linear(self, value: str, name: str) -> str:
        return self._builder.linear(value, name, (self._heads.hidden_size, self._width))

    def _positions(self) -> str:
        table = self._builder.weight("encoder.rel_embeddings.weight", (2 * self._span, self._width))
        norms = [norm.strip() for norm in str(self._config.get("norm_rel_ebd", "none")).lower().split("|")]
        if "layer_norm" in norms:
            return self._builder.layer_norm(table, "encoder.LayerNorm", _epsilon(self._config))
        return table

    def _distances(self, trained: int) -> str:
        """Row of the table for each pair of tokens: `[rows, heads, width, width]`."""
        builder = self._builder
        farthest = trained if _buckets(self._config) else self._span
        back = np.arange(-farthest, farthest + 1)
        buckets = log_buckets(back, _buckets(self._config), trained) if _buckets(self._config) else back
        rows = np.clip(buckets + self._span, 0, 2 * self._span - 1)
        index = builder.gather(builder.constant(rows, np.int64), distance_index(builder, farthest))
        return builder.node("Expand", [index, builder.ints(1, self._heads.count, 1, 1)])


def log_buckets(back: NDArray[np.int64], buckets: int, trained: int) -> NDArray[np.int64]:
    """Signed bucket of each distance: exact up to half the buckets, logarithmic beyond.

    From `make_log_bucket_position` of the reference; in float32, since rounding decides at the borders.
    """
    half = buckets // 2
    away = np.abs(back)
    ratio = np.log(np.maximum(away, half).astype(np.float32) / np.float32(half))
    steps = ratio / np.log(np.float32((trained - 1) / half)) * np.float32(half - 1)
    far = np.ceil(steps).astype(np.int64) + half
    return np.asarray(np.where(away <= half, back, np.sign(back) * far), np.int64)


def _terms(config: Config) -> tuple[str, ...]:
    """Which of the two position terms config.json names."""
    named = config.get("pos_att_type") or []
    names = [part.strip() for part in named.lower().split("|")] if isinstance(named, str) else list(named)
    for name in names:
        check_config({"model_type": "deberta-v2", "pos_att_type": name}, "pos_att_type", "c2p", "p2c")
    return tuple(names)


def _span(config: Config) -> tuple[int, int]:
    """Half the rows of the position table, and the distance up to which buckets were trained."""
    trained = int(config.get("max_relative_positions", -1))
    if trained < 1:
        trained = int(require_config(config, "max_position_embeddings"))
    return _buckets(config) or trained, trained


def _buckets(config: Config) -> int:
    return max(int(config.get("position_buckets", -1)), 0)


def _embeddings(builder: GraphBuilder, config: Config) -> str:
    total = builder.lookup("embeddings.word_embeddings.weight", builder.flatten(builder.input("input_ids")))
    if config.get("position_biased_input", True):
        positions = builder.flatten(builder.input("position_ids"))
        total = builder.add(total, builder.lookup("embeddings.position_embeddings.weight", positions))
    if int(config.get("type_vocab_size", 0)) > 0:
        types = builder.flatten(builder.input("token_type_ids"))
        total = builder.add(total, builder.lookup("embeddings.token_type_embeddings.weight", types))
    if int(config.get("embedding_size") or config["hidden_size"]) != int(require_config(config, "hidden_size")):
        projection = builder.node("Transpose", [builder.weight("embeddings.embed_proj.weight")], perm=[1, 0])
        total = builder.node("MatMul", [total, projection])
    return builder.layer_norm(total, "embeddings.LayerNorm", _epsilon(config))


def _layer(builder: GraphBuilder, config: Config, attention: _Disentangled, hidden: str, name: str) -> str:
    width, inner = int(config["hidden_size"]), int(require_config(config, "intermediate_size"))
    context = attention(hidden, f"{name}.attention.self")
    attended = builder.linear(context, f"{name}.attention.output.dense", (width, width))
    hidden = builder.layer_norm(builder.add(attended, hidden), f"{name}.attention.output.LayerNorm", _epsilon(config))
    expanded = builder.linear(hidden, f"{name}.intermediate.dense", (inner, width))
    activated = builder.activation(expanded, str(config.get("hidden_act", "gelu")))
    contracted = builder.linear(activated, f"{name}.output.dense", (width, inner))
    return builder.layer_norm(builder.add(contracted, hidden), f"{name}.output.LayerNorm", _epsilon(config))


def _add_neighbours(builder: GraphBuilder, config: Config, embedded: str, hidden: str) -> str:
    """What the largest checkpoints add behind the first layer: a convolution of the embeddings."""
    mixed = convolve(builder, embedded, "encoder.conv.conv", int(config["conv_kernel_size"]))
    activated = builder.activation(mixed, str(config.get("conv_act", "tanh")))
    return builder.layer_norm(builder.add(hidden, activated), "encoder.conv.LayerNorm", _epsilon(config))


def _epsilon(config: Config) -> float:
    return float(config.get("layer_norm_eps", 1e-7))


DEBERTA_V2 = Architecture(encode, score, ("deberta.",))
