"""HTSAT, CLAP's audio tower: log-mel spectrograms, folded into a square picture, through a Swin transformer.

Chen et al. 2022; attentional feature fusion of long sounds: Dai et al. 2021; names of tensors: transformers 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.architecture import Config, check_config
from infinity_emb.models.graph.htsat_patches import BATCH_NORM_EPSILON, ROOT, embed_patches, pair
from infinity_emb.models.graph.stretch import stretch
from infinity_emb.models.graph.swin import MERGE_EPSILON, Stage, Style, encode_stage, merge_patches

if TYPE_CHECKING:
    from infinity_emb.models.graph.builder import GraphBuilder

# fields that change the result, and the values that are computed
_KNOWN: dict[str, tuple[Any, ...]] = {
    "fusion_type": ("aff_2d",),
    "flatten_patch_embeds": (True,),
    "patch_embed_input_channels": (1,),
}


def encode_sound(builder: GraphBuilder, config: Config, spectrograms: str, frames: int) -> str:
    """Pooled state of the tower.

    Args:
        builder: Of the graph.
        config: `audio_config`, complete.
        spectrograms: Value `[segments, 1 or 4, frames, mels]`.
        frames: Their number.

    Returns:
        Value `[segments, width of the last stage]`.
    """
    for field, known in _KNOWN.items():
        check_config(config, field, *known)
    mels, side = int(config["num_mel_bins"]), int(config["spec_size"])
    if side % mels or frames > side * (side // mels):
        raise _unfit("spec_size", f"{side} holds no spectrogram of {frames} frames and {mels} mel bands")
    picture = _fold(
        builder, _normalize(builder, spectrograms), frames, (mels, side, 4 if config["enable_fusion"] else 1)
    )
    hidden = embed_patches(builder, config, picture)
    stages = _stages(config, side)
    style = Style(
        activation=str(config["hidden_act"]),
        epsilon=float(config["layer_norm_eps"]),
        bias=bool(config["qkv_bias"]),
    )
    for number, (stage, depth) in enumerate(zip(stages, config["depths"], strict=True)):
        hidden = encode_stage(builder, stage, style, int(depth), hidden)
        if number < len(stages) - 1:
            hidden = merge_patches(builder, stage, hidden)
    last = stages[-1]
    hidden = builder.layer_norm(hidden, f"{ROOT}.norm", MERGE_EPSILON)
    grids = builder.node("Reshape", [hidden, builder.ints(-1, last.side**2, last.width)])
    return builder.node("ReduceMean", [grids, builder.ints(1)], keepdims=0)


def _normalize(builder: GraphBuilder, spectrograms: str) -> str:
    """Batch normalisation with one mean and one scale a mel band, the last axis."""
    name = f"{ROOT}.batch_norm"
    variance = builder.node("Add", [builder.weight(f"{name}.running_var"), builder.number(BATCH_NORM_EPSILON)])
    scale = builder.node("Div", [builder.weight(f"{name}.weight"), builder.node("Sqrt", [variance])])
    centred = builder.node("Sub", [spectrograms, builder.weight(f"{name}.running_mean")])
    return builder.node("Add", [builder.node("Mul", [centred, scale]), builder.weight(f"{name}.bias")])


def _fold(builder: GraphBuilder, value: str, frames: int, shape: tuple[int, int, int]) -> str:
    """Time is stretched to fill a square picture and cut into strips, which lie below each other, mel bands upright.

    `[segments, channels, frames, mels]` → `[segments, channels, side, side]`; `shape` is `(mels, side, channels)`.
    """
    mels, side, channels = shape
    strips = side // mels
    if frames < side * strips:
        value = stretch(builder, value, frames, side * strips)
    value = builder.node("Reshape", [value, builder.ints(-1, channels * strips, side, mels)])
    value = builder.node("Transpose", [value], perm=[0, 1, 3, 2])
    return builder.node("Reshape", [value, builder.ints(-1, channels, side, side)])


def _stages(config: Config, side: int) -> list[Stage]:
    stride = pair(config["patch_stride"])
    window, width = int(config["window_size"]), int(config["patch_embeds_hidden_size"])
    if stride[0] != stride[1] or side % stride[0]:
        raise _unfit("patch_stride", f"{stride} does not divide a picture of {side} points into a square grid")
    stages = []
    for number, heads in enumerate(config["num_attention_heads"]):
        grid = side // stride[0] // 2**number
        if grid % window:
            raise _unfit("window_size", f"{window} does not divide a grid of {grid} tokens a side")
        shift = 0 if grid <= window else window // 2
        inner = int(float(config["mlp_ratio"]) * width)
        stages.append(Stage(f"{ROOT}.layers.{number}", grid, window, shift, width, int(heads), inner))
        width *= 2
    return stages


def _unfit(field: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"config.json: audio_config.{field}: {reason}, which the graph builder does not compute. Use --engine torch.",
        param=f"config.json: audio_config.{field}",
    )
