"""CLAP: a RoBERTa for texts and an HTSAT for sounds, each followed by a projection into one space.

Wu et al. 2023; names of tensors: transformers 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.graph.architecture import Config, JointArchitecture
from infinity_emb.models.graph.bert import encode_roberta
from infinity_emb.models.graph.htsat import encode_sound
from infinity_emb.models.spec.sound import SPECTROGRAMS
from infinity_emb.models.spec.towers import AUDIO, TEXT, tower_config
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder


def embed_text(builder: GraphBuilder, config: Config) -> str:
    """The pooled state of each text's first token, projected."""
    hidden = encode_roberta(builder, tower_config(config, TEXT))
    first = builder.gather(hidden, builder.input("first_index"))
    pooled = builder.node("Tanh", [builder.linear(first, "pooler.dense")])
    return _project(builder, config, "text_projection", pooled)


def embed_audio(builder: GraphBuilder, config: Config) -> str:
    """The mean state of each sound, projected."""
    spectrograms, (_, frames, _) = builder.media(SPECTROGRAMS)
    pooled = encode_sound(builder, tower_config(config, AUDIO), spectrograms, frames)
    return _project(builder, config, "audio_projection", pooled)


def _project(builder: GraphBuilder, config: Config, name: str, value: str) -> str:
    """Two layers, then unit length: the reference gives vectors that are, so nothing else ever comes out of a tower."""
    dim = int(config.get("projection_dim") or 512)
    inner = builder.linear(value, f"{name}.linear1")
    activated = builder.activation(inner, str(config.get("projection_hidden_act") or "relu"))
    projected = builder.linear(activated, f"{name}.linear2", (dim, dim))
    return builder.node("Div", [projected, builder.l2_norm(projected)])


CLAP = JointArchitecture({Modality.TEXT: embed_text, Modality.AUDIO: embed_audio}, ("text_model.",))
