"""Swin transformer: attention in windows of a grid, every second time shifted; grids shrink from stage to stage.

Liu et al. 2021. Which tokens share a window is a fixed permutation of the grid, so shifting, partitioning, and their
reverse are one Gather each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.graph.builder import attention_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.models.graph.builder import GraphBuilder

    Integers = NDArray[np.int64]

_APART = -100.0  # added to the scores of tokens that only the shift brought together
MERGE_EPSILON = 1e-5  # default of torch.nn.LayerNorm


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage; its layers share everything but the shift.

    Attributes:
        name: Prefix of its tensors.
        side: Tokens a side of the square grid.
        window: Tokens a side of a window; divides `side`.
        shift: Tokens by which every second layer shifts; 0 where one window is the grid.
        width: Numbers a token.
        heads: Attention heads.
        inner: Width of the feed-forward layer.
    """

    name: str
    side: int
    window: int
    shift: int
    width: int
    heads: int
    inner: int


@dataclass(frozen=True, slots=True)
class Style:
    """What all stages share.

    Attributes:
        activation: Name of the feed-forward activation.
        epsilon: Of the layers' normalisation.
        bias: Whether queries, keys and values have one.
    """

    activation: str
    epsilon: float
    bias: bool


def encode_stage(builder: GraphBuilder, stage: Stage, style: Style, depth: int, hidden: str) -> str:
    """The layers of a stage: `[grids·side², width]` → the same."""
    for number in range(depth):
        shift = stage.shift if number % 2 else 0
        hidden = _layer(builder, stage, style, shift, f"{stage.name}.blocks.{number}", hidden)
    return hidden


def merge_patches(builder: GraphBuilder, stage: Stage, hidden: str) -> str:
    """Four neighbours become one token: `[grids·side², width]` → `[grids·(side/2)², 2·width]`."""
    grid = np.arange(stage.side**2).reshape(stage.side, stage.side)
    order = np.stack([grid[row::2, column::2] for column in (0, 1) for row in (0, 1)], axis=-1)
    together = _permute(builder, hidden, order.reshape(-1), stage.width)
    together = builder.node("Reshape", [together, builder.ints(-1, 4 * stage.width)])
    normed = builder.layer_norm(together, f"{stage.name}.downsample.norm", MERGE_EPSILON)
    shape = (2 * stage.width, 4 * stage.width)
    return builder.linear(normed, f"{stage.name}.downsample.reduction", shape, bias=False)


def window_order(side: int, window: int, shift: int) -> Integers:
    """Tokens of the shifted grid, window by window: place in that order → token, int64 `[side²]`."""
    grid = np.roll(np.arange(side**2).reshape(side, side), (-shift, -shift), axis=(0, 1))
    count = side // window
    order: Integers = grid.reshape(count, window, count, window).transpose(0, 2, 1, 3).reshape(-1)
    return order


def window_regions(side: int, window: int, shift: int) -> Integers:
    """Part of the picture each token of `window_order` comes from; parts of a window do not see each other.

    Returns:
        int64 `[windows, window²]`.
    """
    places = np.arange(side)
    bands = (places >= side - window).astype(np.int64) + (places >= side - shift)
    grid = bands[:, None] * 3 + bands[None, :]
    count = side // window
    windows = grid.reshape(count, window, count, window).transpose(0, 2, 1, 3)
    regions: Integers = windows.reshape(count**2, window**2)
    return regions


def relative_index(window: int) -> Integers:
    """Row of the bias table for each query and key of a window: int64 `[window², window²]`."""
    rows, columns = np.divmod(np.arange(window**2), window)
    down = rows[:, None] - rows[None, :] + window - 1
    right = columns[:, None] - columns[None, :] + window - 1
    index: Integers = down * (2 * window - 1) + right
    return index


def _layer(builder: GraphBuilder, stage: Stage, style: Style, shift: int, name: str, hidden: str) -> str:
    normed = builder.layer_norm(hidden, f"{name}.layernorm_before", style.epsilon)
    hidden = builder.add(_attention(builder, stage, style, shift, f"{name}.attention", normed), hidden)
    normed = builder.layer_norm(hidden, f"{name}.layernorm_after", style.epsilon)
    expanded = builder.linear(normed, f"{name}.intermediate.dense", (stage.inner, stage.width))
    activated = builder.activation(expanded, style.activation)
    return builder.add(builder.linear(activated, f"{name}.output.dense", (stage.width, stage.inner)), hidden)


def _attention(builder: GraphBuilder, stage: Stage, style: Style, shift: int, name: str, hidden: str) -> str:
    order = window_order(stage.side, stage.window, shift)
    ordered = _permute(builder, hidden, order, stage.width)
    shape = (stage.width, stage.width)
    query, key, value = (
        builder.linear(ordered, f"{name}.self.{part}", shape, bias=style.bias) for part in ("query", "key", "value")
    )
    size = stage.width // stage.heads
    windows = (stage.side // stage.window) ** 2
    split = builder.ints(-1, windows, stage.window**2, stage.heads, size)
    query, key, value = (builder.node("Reshape", [part, split]) for part in (query, key, value))
    query = builder.node("Mul", [query, builder.number(attention_scale(size))])
    query = builder.node("Transpose", [query], perm=[0, 1, 3, 2, 4])
    key = builder.node("Transpose", [key], perm=[0, 1, 3, 4, 2])
    value = builder.node("Transpose", [value], perm=[0, 1, 3, 2, 4])
    scores = builder.node("Add", [builder.node("MatMul", [query, key]), _bias(builder, stage, shift, name)])
    context = builder.node("MatMul", [builder.node("Softmax", [scores], axis=-1), value])
    merged = builder.node("Transpose", [context], perm=[0, 1, 3, 2, 4])
    merged = builder.node("Reshape", [merged, builder.ints(-1, stage.width)])
    back = _permute(builder, merged, np.argsort(order), stage.width)
    return builder.linear(back, f"{name}.output.dense", shape)


def _bias(builder: GraphBuilder, stage: Stage, shift: int, name: str) -> str:
    """What is added to the scores: `[heads, window², window²]`, for each window apart where the grid is shifted."""
    rows = (2 * stage.window - 1) ** 2
    table = builder.weight(f"{name}.self.relative_position_bias_table", (rows, stage.heads))
    learnt = builder.gather(table, builder.constant(relative_index(stage.window), np.int64))
    learnt = builder.node("Transpose", [learnt], perm=[2, 0, 1])
    if not shift:
        return learnt
    regions = builder.constant(window_regions(stage.side, stage.window, shift), np.int64)
    queries = builder.node("Unsqueeze", [regions, builder.ints(1, 3)])
    keys = builder.node("Unsqueeze", [regions, builder.ints(1, 2)])
    same = builder.node("Equal", [queries, keys])
    apart = builder.node("Where", [same, builder.number(0.0), builder.number(_APART)])
    return builder.node("Add", [apart, learnt])


def _permute(builder: GraphBuilder, hidden: str, order: Integers, width: int) -> str:
    """Tokens of every grid in another order."""
    if np.array_equal(order, np.arange(len(order))):
        return hidden
    grids = builder.node("Reshape", [hidden, builder.ints(-1, len(order), width)])
    moved = builder.node("Gather", [grids, builder.constant(order, np.int64)], axis=1)
    return builder.node("Reshape", [moved, builder.ints(-1, width)])
