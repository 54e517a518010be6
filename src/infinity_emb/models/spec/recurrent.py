"""Reads LSTM: a recurrent network that reads a text in one direction or in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.weights import SINGLE, check_tensor, find_module_weights

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.files import ConfigFile, Repository

GATES = 4  # input, forget, cell, output: the order in which torch stores them


@dataclass(frozen=True, slots=True)
class RecurrentSpec:
    """`torch.nn.LSTM` over the tokens of a text, Hochreiter and Schmidhuber 1997.

    Attributes:
        in_features: Width of a token state.
        hidden: Numbers that each direction makes of a token.
        layers: Networks on top of each other.
        both_ways: A second network reads from the end; the results are concatenated.
        weights: File with `encoder.weight_ih_lN`, `weight_hh_lN`, `bias_ih_lN`, `bias_hh_lN`, each also `_reverse`.
    """

    in_features: int
    hidden: int
    layers: int
    both_ways: bool
    weights: Path

    @property
    def out_features(self) -> int:
        """Width of a token state behind it."""
        return self.hidden * len(self.directions)

    @property
    def directions(self) -> tuple[str, ...]:
        """Endings of the names of each direction's tensors."""
        return ("", "_reverse") if self.both_ways else ("",)

    def shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Tensors of one direction of a layer, without the ending."""
        inputs = self.out_features if layer else self.in_features
        rows = GATES * self.hidden
        return {
            f"encoder.weight_ih_l{layer}": (rows, inputs),
            f"encoder.weight_hh_l{layer}": (rows, self.hidden),
            f"encoder.bias_ih_l{layer}": (rows,),
            f"encoder.bias_hh_l{layer}": (rows,),
        }


def read_recurrent(repository: Repository, folder: str, config: ConfigFile, width: int) -> RecurrentSpec:
    """Read the module; what it says of dropout does nothing at inference.

    Raises:
        CheckpointError: Another width than that of the token states, or missing weights.
    """
    inputs = config.whole("embedding_dimension") or config.needed_whole("word_embedding_dimension")
    if inputs != width:
        raise config.error("embedding_dimension", f"{inputs} does not fit token states of width {width}.")
    spec = RecurrentSpec(
        inputs,
        config.needed_whole("hidden_dim"),
        config.whole("num_layers") or 1,
        config.flag("bidirectional", default=True),
        find_module_weights(repository, folder),
    )
    for layer in range(spec.layers):
        for name, shape in spec.shapes(layer).items():
            for ending in spec.directions:
                check_tensor(spec.weights, join(folder, SINGLE), name + ending, shape)
    return spec
