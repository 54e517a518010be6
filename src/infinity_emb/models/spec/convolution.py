"""Reads CNN: convolutions of several widths along a text, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.weights import SINGLE, check_tensor, find_module_weights

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.files import ConfigFile, Repository

DEFAULT_CHANNELS, DEFAULT_KERNELS = 256, (1, 3, 5)


@dataclass(frozen=True, slots=True)
class ConvolutionSpec:
    """`torch.nn.Conv1d` of each kernel, zeros beyond both ends of a text, the results concatenated.

    Attributes:
        in_features: Width of a token state.
        channels: Numbers that each convolution makes of a token.
        kernels: Tokens that each convolution sees, odd.
        weights: File with `convs.N.weight` `[channels, in, kernel]` and `convs.N.bias`.
    """

    in_features: int
    channels: int
    kernels: tuple[int, ...]
    weights: Path

    @property
    def out_features(self) -> int:
        """Width of a token state behind it."""
        return self.channels * len(self.kernels)


def read_convolution(repository: Repository, folder: str, config: ConfigFile, width: int) -> ConvolutionSpec:
    """Read the module.

    Raises:
        CheckpointError: Another width than that of the token states, kernels or strides that change the number of
            tokens, or missing weights.
    """
    inputs = config.whole("in_embedding_dimension") or config.needed_whole("in_word_embedding_dimension")
    if inputs != width:
        raise config.error("in_embedding_dimension", f"{inputs} does not fit token states of width {width}.")
    kernels = _whole_numbers(config, "kernel_sizes") or DEFAULT_KERNELS
    strides = _whole_numbers(config, "stride_sizes") or (1,) * len(kernels)
    if any(kernel % 2 == 0 for kernel in kernels):
        raise config.error("kernel_sizes", f"{list(kernels)} is not supported. Supported: odd numbers.")
    if strides != (1,) * len(kernels):
        raise config.error("stride_sizes", f"{list(strides)} is not supported. Supported: 1 for every kernel.")
    channels = config.whole("out_channels") or DEFAULT_CHANNELS
    weights, shown = find_module_weights(repository, folder), join(folder, SINGLE)
    for number, kernel in enumerate(kernels):
        check_tensor(weights, shown, f"convs.{number}.weight", (channels, inputs, kernel))
        check_tensor(weights, shown, f"convs.{number}.bias", (channels,))
    return ConvolutionSpec(inputs, channels, kernels, weights)


def _whole_numbers(config: ConfigFile, field: str) -> tuple[int, ...]:
    numbers = config.data.get(field) or []
    if not isinstance(numbers, list) or not all(type(number) is int and number > 0 for number in numbers):
        raise config.error(field, f"{numbers!r} is no list of whole numbers above 0. Correct the file.")
    return tuple(numbers)
