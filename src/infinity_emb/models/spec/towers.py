"""Reads the sections of a config.json that describes a text model beside a vision or audio model."""

from __future__ import annotations

from typing import Any

TEXT, VISION, AUDIO = "text_config", "vision_config", "audio_config"

# What transformers takes where a file is silent; files are often written without what is not special about them.
_CLIP = {"hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "num_hidden_layers": 12}
_SIGLIP = {
    "hidden_act": "gelu_pytorch_tanh",
    "layer_norm_eps": 1e-6,
    "hidden_size": 768,
    "intermediate_size": 3072,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
}
_DEFAULTS: dict[tuple[str, str], dict[str, Any]] = {
    ("clip", TEXT): _CLIP
    | {
        "vocab_size": 49408,
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_attention_heads": 8,
        "max_position_embeddings": 77,
        "eos_token_id": 49407,
    },
    ("clip", VISION): _CLIP
    | {
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_attention_heads": 12,
        "num_channels": 3,
        "image_size": 224,
        "patch_size": 32,
    },
    ("siglip", TEXT): _SIGLIP | {"vocab_size": 32000, "max_position_embeddings": 64},
    ("siglip", VISION): _SIGLIP | {"num_channels": 3, "image_size": 224, "patch_size": 16, "vision_use_head": True},
    ("clap", TEXT): {
        "vocab_size": 50265,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 514,
        "type_vocab_size": 1,
        "pad_token_id": 1,
    },
    ("clap", AUDIO): {
        "num_mel_bins": 64,
        "spec_size": 256,
        "patch_size": 4,
        "patch_stride": (4, 4),
        "patch_embeds_hidden_size": 96,
        "enable_patch_layer_norm": True,
        "window_size": 8,
        "depths": (2, 2, 6, 2),
        "num_attention_heads": (4, 8, 16, 32),
        "mlp_ratio": 4.0,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-5,
        "qkv_bias": True,
        "enable_fusion": False,
        "aff_block_r": 4,
    },
}
# Model types that are described in such sections.
JOINT_TYPES = frozenset(model_type for model_type, _ in _DEFAULTS)


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """What describes the text model: the section of its own, or the whole config.json."""
    if config.get("model_type") not in JOINT_TYPES:
        return config
    return tower_config(config, TEXT) | {"model_type": config["model_type"]}


def tower_config(config: dict[str, Any], name: str) -> dict[str, Any]:
    """One section, complete; `<name>_dict` wins over `<name>`, as in the first files of this kind.

    Args:
        config: The whole config.json.
        name: `text_config`, `vision_config` or `audio_config`
    """
    defaults = _DEFAULTS.get((str(config.get("model_type")), name), {})
    section = defaults | _known(config.get(name))
    older = config.get(f"{name}_dict")
    if isinstance(older, dict):
        section |= defaults | _known(older)
    return section


def _known(section: Any) -> dict[str, Any]:
    return {key: value for key, value in section.items() if value is not None} if isinstance(section, dict) else {}
