"""Hot path of models with several heads (BGE-M3): what their numbers mean for a text, and results made together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from infinity_emb.types import EmbedResult, FloatArray, MultiVectorResult, SparseResult

    Names: TypeAlias = frozenset[str]

DENSE = frozenset({"embedding", "norm"})
# kind of result → outputs of the model it is made of
_SOURCES = {
    "dense": DENSE,
    "sparse": frozenset({"token_weights"}),
    "multi_vector": frozenset({"tokens"}),
    "muvera": frozenset({"tokens"}),
}


@dataclass(slots=True)
class SeveralResult:
    """Results of one forward pass, those that were asked for.

    Attributes:
        dense: A vector a text.
        sparse: Weights of words.
        multi_vector: A vector a token.
        muvera: The encoding of those, see `engine.muvera`.
    """

    dense: EmbedResult | None = None
    sparse: SparseResult | None = None
    multi_vector: MultiVectorResult | None = None
    muvera: EmbedResult | None = None


def sources_of(kinds: Iterable[str]) -> frozenset[str]:
    """Outputs of the model that some kinds of results are made of."""
    return frozenset().union(*(_SOURCES[kind] for kind in kinds))


def weigh_tokens(
    token_ids: NDArray[np.int64], weights: FloatArray, unused_ids: tuple[int, ...]
) -> tuple[NDArray[np.int64], FloatArray]:
    """Numbers of the words that weigh something, ascending, and of each the weight of its heaviest token.

    Args:
        token_ids: `[tokens]`.
        weights: Of each `[tokens]`.
        unused_ids: Words that weigh nothing, such as the ends of a text.
    """
    kept = (weights > 0) & ~np.isin(token_ids, unused_ids)
    words, places = np.unique(token_ids[kept], return_inverse=True)
    heaviest = np.zeros(len(words), np.float32)
    np.maximum.at(heaviest, places, weights[kept])
    return words, heaviest
