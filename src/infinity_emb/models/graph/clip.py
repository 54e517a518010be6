"""CLIP: a causal transformer for text and a vision transformer for images, each projected into one space.

Sources: Radford et al. 2021; Dosovitskiy et al. 2021; the modelling files of transformers 5 for the names of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.graph.architecture import Config, JointArchitecture, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, attention_mask
from infinity_emb.models.spec.image import PIXELS
from infinity_emb.models.spec.towers import TEXT, VISION, tower_config
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

# Written into config.json before transformers knew where text ends; then the largest id is taken for the end.
_OLD_END = 2
_BEHIND_ALL = 1 << 24  # behind every slot, and exact in float32, in which OpenVINO compares whole numbers


def embed_text(builder: GraphBuilder, config: Config) -> str:
    """The state at the end of each text, projected."""
    text = tower_config(config, TEXT)
    attention = SegmentAttention(builder, _heads(text), attention_mask(builder, causal=True))
    hidden = encode_layers(builder, text, attention, embed_words(builder), "text_model")
    states = builder.gather(hidden, _end_of_text(builder, text.get("eos_token_id")))
    normed = builder.layer_norm(states, "text_model.final_layer_norm", _epsilon(text))
    return builder.linear(normed, "text_projection", bias=False)


def embed_image(builder: GraphBuilder, config: Config) -> str:
    """The state of the class token of each image, projected."""
    vision = tower_config(config, VISION)
    width, positions = int(vision["hidden_size"]), _positions(vision)
    patches = embed_patches(builder, vision)
    shape = builder.node("Shape", [patches], end=1)
    first = builder.node("Reshape", [builder.weight("vision_model.embeddings.class_embedding"), builder.ints(1, 1, -1)])
    first = builder.node("Expand", [first, builder.node("Concat", [shape, builder.ints(1, width)], axis=0)])
    states = builder.node("Concat", [first, patches], axis=1)
    table = builder.weight("vision_model.embeddings.position_embedding.weight", (positions, width))
    flat = builder.node("Reshape", [builder.node("Add", [states, table]), builder.ints(-1, width)])
    hidden = builder.layer_norm(flat, "vision_model.pre_layrnorm", _epsilon(vision))
    attention = SegmentAttention(builder, _heads(vision), None, positions)
    hidden = encode_layers(builder, vision, attention, hidden, "vision_model")
    rows = builder.node("Reshape", [hidden, builder.ints(-1, positions, width)])
    pooled = builder.node("Gather", [rows, builder.constant(0, np.int64)], axis=1)
    normed = builder.layer_norm(pooled, "vision_model.post_layernorm", _epsilon(vision))
    return builder.linear(normed, "visual_projection", bias=False)


def encode_layers(builder: GraphBuilder, config: Config, attention: SegmentAttention, hidden: str, prefix: str) -> str:
    """Pre-norm transformer layers: `[slots, hidden]` → the same."""
    width, inner = int(config["hidden_size"]), int(config["intermediate_size"])
    epsilon, activation = _epsilon(config), str(config["hidden_act"])
    for number in range(int(require_config(config, "num_hidden_layers"))):
        name = f"{prefix}.encoder.layers.{number}"
        normed = builder.layer_norm(hidden, f"{name}.layer_norm1", epsilon)
        query, key, value = (
            builder.linear(normed, f"{name}.self_attn.{part}_proj", (width, width)) for part in ("q", "k", "v")
        )
        attended = builder.linear(attention(query, key, value), f"{name}.self_attn.out_proj", (width, width))
        hidden = builder.add(hidden, attended)
        normed = builder.layer_norm(hidden, f"{name}.layer_norm2", epsilon)
        expanded = builder.activation(builder.linear(normed, f"{name}.mlp.fc1", (inner, width)), activation)
        hidden = builder.add(hidden, builder.linear(expanded, f"{name}.mlp.fc2", (width, inner)))
    return hidden


def embed_words(builder: GraphBuilder) -> str:
    """Words and their places: `[slots, hidden]`."""
    words = builder.lookup("text_model.embeddings.token_embedding.weight", builder.flatten(builder.input("input_ids")))
    places = builder.gather(
        builder.weight("text_model.embeddings.position_embedding.weight"),
        builder.flatten(builder.input("position_ids")),
    )
    return builder.add(words, places)


def embed_patches(builder: GraphBuilder, vision: Config, *, bias: bool = False) -> str:
    """`[images, patches, hidden]`: a linear layer on each patch, written as a convolution."""
    channels, patch = int(vision["num_channels"]), int(vision["patch_size"])
    pixels, _ = builder.media(PIXELS)
    name, width = "vision_model.embeddings.patch_embedding", int(vision["hidden_size"])
    inputs = [pixels, builder.weight(f"{name}.weight", (width, channels, patch, patch))]
    if bias:
        inputs.append(builder.weight(f"{name}.bias", (width,)))
    grid = builder.node("Conv", inputs, strides=[patch, patch], kernel_shape=[patch, patch])
    flat = builder.node("Reshape", [grid, builder.ints(0, 0, -1)])
    return builder.node("Transpose", [flat], perm=[0, 2, 1])


def _end_of_text(builder: GraphBuilder, end: int | None) -> str:
    """Slot of each text's first end token; its first slot if it has none, as where the reference looks for it."""
    slots = builder.input("token_index")
    ids = builder.gather(builder.flatten(builder.input("input_ids")), slots)
    wanted = builder.ints(int(end)) if end not in {None, _OLD_END} and end is not None else None
    if wanted is None:
        wanted = builder.node("ReduceMax", [ids, builder.ints(1)], keepdims=1)
    found = builder.node("Where", [builder.node("Equal", [ids, wanted]), slots, builder.ints(_BEHIND_ALL)])
    nearest = builder.node("ReduceMin", [found, builder.ints(1)], keepdims=0)
    absent = builder.node("Equal", [nearest, builder.ints(_BEHIND_ALL)])
    return builder.node("Where", [absent, builder.input("first_index"), nearest])


def _heads(config: Config) -> Heads:
    count = int(require_config(config, "num_attention_heads"))
    return Heads(count, int(require_config(config, "hidden_size")) // count)


def _positions(vision: Config) -> int:
    return int((vision["image_size"] // vision["patch_size"]) ** 2 + 1)


def _epsilon(config: Config) -> float:
    return float(config["layer_norm_eps"])


CLIP = JointArchitecture({Modality.TEXT: embed_text, Modality.IMAGE: embed_image})
