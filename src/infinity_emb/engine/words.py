"""Queries of an inference-free sparse encoder: every word that is there weighs what the table says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.preprocess.text import TextPreprocessor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from infinity_emb.models.dummy import DummyPreprocessor
    from infinity_emb.models.features import Features
    from infinity_emb.types import FloatArray


def weigh_words(
    features: Sequence[Features],
    table: FloatArray,
    preprocessor: TextPreprocessor | DummyPreprocessor,
    most: int | None = None,
) -> tuple[list[NDArray[np.int64]], list[FloatArray]]:
    """Numbers of the words of each query that weigh something, ascending, and their weights.

    Args:
        features: As a document would be read; special tokens around the text are left out.
        table: Weight of each word `[vocabulary]`.
        preprocessor: Knows how many special tokens there are.
        most: Largest weights that are kept of a query, None for all.
    """
    head, tail = preprocessor.ends if isinstance(preprocessor, TextPreprocessor) else (0, 0)
    words = []
    for item in features:
        ids = np.unique(item.token_ids[head : len(item.token_ids) - tail])
        ids = ids[table[ids] != 0]
        if most is not None and len(ids) > most:
            ids = np.sort(ids[np.argsort(-np.abs(table[ids]), kind="stable")[:most]])
        words.append(ids)
    return words, [table[ids] for ids in words]
