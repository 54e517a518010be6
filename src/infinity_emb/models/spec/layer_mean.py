"""Reads WeightedLayerPooling: a token's state becomes the weighted mean of its states in several layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.files import join
from infinity_emb.models.spec.weights import SINGLE, check_tensor, find_module_weights

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.files import ConfigFile, Repository
    from infinity_emb.models.spec.transformer import Transformer

SWITCH = "output_hidden_states"
DEFAULT_LAYERS, DEFAULT_START = 12, 4


@dataclass(frozen=True, slots=True)
class LayerMeanSpec:
    """`Σ wᵢ · stateᵢ / Σ wᵢ` over the last states of a token, one a layer.

    Attributes:
        start: First state that counts; 0 is what goes into the first layer.
        count: States that count, the last layer's among them.
        weights: File with `layer_weights` `[count]`.
    """

    start: int
    count: int
    weights: Path


def first_of(transformer: Transformer) -> Chain:
    """The chain that a transformer begins: whether it gives the states of its layers, which the repository decides."""
    sections = [transformer.options.section(name) for name in ("config_kwargs", "config_args")]
    layered = any(place.flag(SWITCH, default=False) for place in (transformer.config, *sections))
    return Chain(transformer.hidden_size, layered=layered, rows=transformer.config.whole("vocab_size") or 0)


def read_layer_mean(repository: Repository, folder: str, config: ConfigFile, width: int) -> LayerMeanSpec:
    """Read the module.

    Raises:
        CheckpointError: Another width than that of the token states, a first layer that is none, or missing weights.
    """
    for field in ("embedding_dimension", "word_embedding_dimension"):
        stated = config.whole(field)
        if stated is not None and stated != width:
            raise config.error(field, f"{stated} does not fit token states of width {width}.")
    layers = config.whole("num_hidden_layers") or DEFAULT_LAYERS
    start = config.whole("layer_start", least=0)
    start = DEFAULT_START if start is None else start
    if start > layers:
        raise config.error("layer_start", f"{start} is beyond the last of {layers} layers.")
    count = layers + 1 - start
    weights = find_module_weights(repository, folder)
    check_tensor(weights, join(folder, SINGLE), "layer_weights", (count,))
    return LayerMeanSpec(start, count, weights)
