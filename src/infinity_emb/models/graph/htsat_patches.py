"""HTSAT's patch vectors: one convolution, or with fusion two, mixed by attention (Dai et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinity_emb.models.graph.swin import MERGE_EPSILON

if TYPE_CHECKING:
    from infinity_emb.models.graph.architecture import Config
    from infinity_emb.models.graph.builder import GraphBuilder

ROOT = "audio_model.audio_encoder"
BATCH_NORM_EPSILON = 1e-5  # default of torch.nn.BatchNorm2d
_PATCH = f"{ROOT}.patch_embed"
_WINDOWS = 3  # beside the whole sound


@dataclass(frozen=True, slots=True)
class _Patches:
    """Sizes of the convolutions.

    Attributes:
        side: Points a side of the picture.
        width: Numbers a patch.
        size: Height and width of a patch in points.
        stride: Points from one patch to the next, down and to the right.
    """

    side: int
    width: int
    size: tuple[int, int]
    stride: tuple[int, int]

    @property
    def padding(self) -> list[int]:
        """Zeros around the picture: above, left, below, right."""
        return [(size - stride) // 2 for size, stride in zip(self.size, self.stride, strict=True)] * 2


def embed_patches(builder: GraphBuilder, config: Config, picture: str) -> str:
    """`[segments, 1 or 4, side, side]` → `[segments·patches, width]`."""
    patches = _Patches(
        side=int(config["spec_size"]),
        width=int(config["patch_embeds_hidden_size"]),
        size=pair(config["patch_size"]),
        stride=pair(config["patch_stride"]),
    )
    if config["enable_fusion"]:
        value = _fused(builder, patches, picture, patches.width // int(config["aff_block_r"]))
    else:
        value = _project(builder, patches, picture)
    value = builder.node("Transpose", [value], perm=[0, 2, 3, 1])
    value = builder.node("Reshape", [value, builder.ints(-1, patches.width)])
    if not config["enable_patch_layer_norm"]:
        return value
    return builder.layer_norm(value, f"{_PATCH}.norm", MERGE_EPSILON)


def pair(value: Any) -> tuple[int, int]:
    """A size that a config.json gives as one number or two."""
    down, right = (value, value) if isinstance(value, int) else value
    return int(down), int(right)


def _project(builder: GraphBuilder, patches: _Patches, picture: str) -> str:
    shape = (patches.width, *patches.size)
    return _convolve(builder, picture, f"{_PATCH}.proj", shape, strides=list(patches.stride), pads=patches.padding)


def _fused(builder: GraphBuilder, patches: _Patches, picture: str, inner: int) -> str:
    """Patches of the whole sound and of its windows, mixed: `[segments, width, grid, grid]`.

    The windows' patches are three times as wide, so that side by side they cover about the same grid. Every sound is
    treated as a long one, as the reference treats one that comes alone.
    """
    whole = _project(builder, patches, builder.node("Gather", [picture, builder.ints(0)], axis=1))
    windows = builder.node("Gather", [picture, builder.ints(*range(1, _WINDOWS + 1))], axis=1)
    windows = builder.node("Reshape", [windows, builder.ints(-1, 1, patches.side, patches.side)])
    shape = (patches.width, patches.size[0], _WINDOWS * patches.size[1])
    strides = [patches.stride[0], _WINDOWS * patches.stride[1]]
    windows = _convolve(builder, windows, f"{_PATCH}.mel_conv2d", shape, strides=strides, pads=patches.padding)
    columns = (patches.side + 2 * patches.padding[1] - shape[2]) // strides[1] + 1
    rows, grid = (patches.side // stride for stride in patches.stride)
    windows = builder.node("Reshape", [windows, builder.ints(-1, _WINDOWS, patches.width, rows, columns)])
    windows = builder.node("Transpose", [windows], perm=[0, 2, 3, 1, 4])
    windows = builder.node("Reshape", [windows, builder.ints(0, 0, 0, _WINDOWS * columns)])
    windows = builder.node("Pad", [windows, builder.ints(0, 0, 0, 0, 0, 0, 0, grid - _WINDOWS * columns)])
    return _mix(builder, (patches.width, inner), whole, windows)


def _mix(builder: GraphBuilder, widths: tuple[int, int], whole: str, windows: str) -> str:
    """`2·whole·s + 2·windows·(1 - s)`; the share s comes from both, each place by itself and on average."""
    both = builder.add(whole, windows)
    near = _narrow(builder, both, "local_att", 0, widths)
    everywhere = _narrow(builder, builder.node("GlobalAveragePool", [both]), "global_att", 1, widths)
    share = builder.node("Sigmoid", [builder.add(near, everywhere)])
    rest = builder.node("Sub", [builder.number(1.0), share])
    mixed = builder.add(builder.node("Mul", [whole, share]), builder.node("Mul", [windows, rest]))
    return builder.node("Mul", [mixed, builder.number(2.0)])


def _narrow(builder: GraphBuilder, value: str, name: str, first: int, widths: tuple[int, int]) -> str:
    """Two 1x1 convolutions, each with batch normalisation, a ReLU between; `first` is the number of the first one."""
    width, inner = widths
    name = f"{_PATCH}.fusion_model.{name}"
    value = _convolve(builder, value, f"{name}.{first}", (inner, 1, 1))
    value = builder.node("Relu", [_batch_norm(builder, value, f"{name}.{first + 1}")])
    value = _convolve(builder, value, f"{name}.{first + 3}", (width, 1, 1))
    return _batch_norm(builder, value, f"{name}.{first + 4}")


def _convolve(builder: GraphBuilder, value: str, name: str, shape: tuple[int, int, int], **settings: Any) -> str:
    """A convolution; `shape` is (channels out, height and width of the kernel)."""
    inputs = [value, builder.weight(f"{name}.weight"), builder.weight(f"{name}.bias", shape[:1])]
    return builder.node("Conv", inputs, kernel_shape=list(shape[1:]), **settings)


def _batch_norm(builder: GraphBuilder, value: str, name: str) -> str:
    parts = ("weight", "bias", "running_mean", "running_var")
    inputs = [value, *(builder.weight(f"{name}.{part}") for part in parts)]
    return builder.node("BatchNormalization", inputs, epsilon=BATCH_NORM_EPSILON)
