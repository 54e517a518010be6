"""SigLIP: a transformer that sees both ways for text, and one for images whose patches are pooled by attention.

Sources: Zhai et al. 2023; Tschannen et al. 2025 (SigLIP 2, of fixed resolution); the modelling files of transformers 5
for the names of tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Config, JointArchitecture, require_config
from infinity_emb.models.graph.attention import Heads, SegmentAttention, attention_mask
from infinity_emb.models.graph.clip import embed_patches, embed_words, encode_layers
from infinity_emb.models.spec.towers import TEXT, VISION, tower_config
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

_HEAD = "vision_model.head"


def embed_text(builder: GraphBuilder, config: Config) -> str:
    """The state of each text's last token, projected; texts come filled up, and the filling is seen."""
    text = tower_config(config, TEXT)
    attention = SegmentAttention(builder, _heads(text), attention_mask(builder))
    hidden = encode_layers(builder, text, attention, embed_words(builder), "text_model")
    last = builder.gather(hidden, builder.input("last_index"))
    normed = builder.layer_norm(last, "text_model.final_layer_norm", float(text["layer_norm_eps"]))
    return builder.linear(normed, "text_model.head")


def embed_image(builder: GraphBuilder, config: Config) -> str:
    """What one learned question finds in all patches of an image."""
    vision = tower_config(config, VISION)
    width, epsilon = int(vision["hidden_size"]), float(vision["layer_norm_eps"])
    positions = int((vision["image_size"] // vision["patch_size"]) ** 2)
    table = builder.weight("vision_model.embeddings.position_embedding.weight", (positions, width))
    placed = builder.node("Add", [embed_patches(builder, vision, bias=True), table])
    hidden = builder.node("Reshape", [placed, builder.ints(-1, width)])
    attention = SegmentAttention(builder, _heads(vision), None, positions)
    hidden = encode_layers(builder, vision, attention, hidden, "vision_model")
    pooled = _pool(builder, vision, builder.layer_norm(hidden, "vision_model.post_layernorm", epsilon), positions)
    normed = builder.layer_norm(pooled, f"{_HEAD}.layernorm", epsilon)
    expanded = builder.activation(builder.linear(normed, f"{_HEAD}.mlp.fc1"), str(vision["hidden_act"]))
    return builder.add(pooled, builder.linear(expanded, f"{_HEAD}.mlp.fc2"))


def _pool(builder: GraphBuilder, vision: Config, hidden: str, positions: int) -> str:
    """Attention of the learned question over an image's patches: `[images·patches, width]` → `[images, width]`."""
    heads = _heads(vision)
    width = heads.hidden_size
    question = builder.node("Reshape", [builder.weight(f"{_HEAD}.probe", (1, 1, width)), builder.ints(1, width)])
    attention = SegmentAttention(builder, heads, None, positions)
    query, key, value = (
        _project(builder, source, width, part) for part, source in enumerate((question, hidden, hidden))
    )
    asked = builder.node("Reshape", [attention.scaled(query), builder.ints(1, 1, heads.count, heads.size)])
    found = attention.attend(asked, attention.keys(key), attention.keys(value))
    return builder.linear(found, f"{_HEAD}.attention.out_proj", (width, width))


def _project(builder: GraphBuilder, value: str, width: int, part: int) -> str:
    """One of the three projections that lie in one tensor: of queries, keys and values."""
    rows = [builder.ints(part * width), builder.ints((part + 1) * width), builder.ints(0)]
    weight = builder.weight(f"{_HEAD}.attention.in_proj_weight", (3 * width, width))
    bias = builder.weight(f"{_HEAD}.attention.in_proj_bias", (3 * width,))
    return builder.node("Gemm", [value, *(builder.node("Slice", [one, *rows]) for one in (weight, bias))], transB=1)


def _heads(config: Config) -> Heads:
    count = int(require_config(config, "num_attention_heads"))
    return Heads(count, int(require_config(config, "hidden_size")) // count)


SIGLIP = JointArchitecture({Modality.TEXT: embed_text, Modality.IMAGE: embed_image})
