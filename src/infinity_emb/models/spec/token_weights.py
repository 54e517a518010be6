"""Reads WordWeights: every token's state is multiplied by a weight of its word, such as its idf."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from infinity_emb.models.spec.model import PoolingSpec

if TYPE_CHECKING:
    from typing import Any

    from infinity_emb.models.spec.files import ConfigFile


@dataclass(frozen=True, slots=True)
class TokenWeightsSpec:
    """`state · weight[token]`.

    Attributes:
        weights: Of each token id.
    """

    weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class WeighedPoolingSpec(PoolingSpec):
    """Pooling of weighed states: means are divided by the sum of the weights instead of the number of tokens.

    Attributes:
        token_weights: Where the weights come from.
    """

    token_weights: TokenWeightsSpec = TokenWeightsSpec(())


def weighed(pooling: PoolingSpec, token_weights: TokenWeightsSpec) -> WeighedPoolingSpec:
    """The same pooling, of weighed states."""
    stated: dict[str, Any] = {field.name: getattr(pooling, field.name) for field in fields(pooling)}
    return WeighedPoolingSpec(**stated, token_weights=token_weights)


def read_token_weights(config: ConfigFile, rows: int) -> TokenWeightsSpec:
    """Read the module; `rows` are the token ids there are.

    Raises:
        CheckpointError: No vocabulary, weights that are no numbers, or a token id without a weight.
    """
    weights = read_word_weights(config, read_vocabulary(config))
    if len(weights) < rows:
        raise config.error("vocab", f"it has {len(weights)} words, but there are {rows} token ids.")
    return TokenWeightsSpec(weights)


def read_vocabulary(config: ConfigFile) -> list[str]:
    """The field `vocab`.

    Raises:
        CheckpointError: It is no list of words.
    """
    words = config.data.get("vocab")
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise config.error("vocab", "expected a list of words. Download the file again.")
    return words


def read_word_weights(config: ConfigFile, words: list[str]) -> tuple[float, ...]:
    """The weight of each word: its own, that of its lower case, or that of unknown words.

    Raises:
        CheckpointError: A weight is no number.
    """
    known = config.section("word_weights").data
    unknown = config.data.get("unknown_word_weight", 1)
    for name, weight in (("unknown_word_weight", unknown), *((f"word_weights.{word}", known[word]) for word in known)):
        if isinstance(weight, bool) or not isinstance(weight, (int, float)):
            raise config.error(name, f"{weight!r} is no number. Correct the file.")
    return tuple(float(known[word] if word in known else known.get(word.lower(), unknown)) for word in words)
