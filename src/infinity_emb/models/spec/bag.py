"""Reads BoW: a text as the words it holds, each with its weight, in a vector as long as the vocabulary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.models.spec.token_weights import read_vocabulary, read_word_weights

if TYPE_CHECKING:
    from infinity_emb.models.spec.files import ConfigFile


@dataclass(frozen=True, slots=True)
class BagSpec:
    """`vector[word] = weight[word] · how often it is there`.

    Attributes:
        weights: Of each word.
        counted: A word that is there twice weighs twice as much.
    """

    weights: tuple[float, ...]
    counted: bool


def read_bag(config: ConfigFile) -> BagSpec:
    """Read the module.

    Raises:
        CheckpointError: No vocabulary, or weights that are no numbers.
    """
    words = list(dict.fromkeys(read_vocabulary(config)))
    return BagSpec(read_word_weights(config, words), config.flag("cumulative_term_frequency", default=True))
