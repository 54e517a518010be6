"""Late interaction: which vectors of a text count, merging them, and comparing a query with documents (MaxSim)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.engine.merging import merge_vectors
from infinity_emb.models.preprocess.late import asks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import FloatArray, TextOptions


def finish_tokens(
    tokens: Sequence[FloatArray], features: Sequence[Features], spec: ModelSpec, options: TextOptions
) -> list[FloatArray]:
    """The vectors that count, `[n, dim]` a text: without skipped tokens, and merged where the model says so."""
    late = spec.late
    if late is None:
        return list(tokens)
    kind = "query" if asks(options) else "document"
    kept = list(tokens)
    if late.skip_ids and kind in late.skip_tasks:
        skipped = np.array(late.skip_ids)
        kept = [vectors[~np.isin(item.token_ids, skipped)] for vectors, item in zip(tokens, features, strict=True)]
    if kind == "document" and (late.pool_factor > 1 or late.pooled_unit):
        kept = [merge_vectors(one, late.pool_factor, late.protected, unit=late.pooled_unit) for one in kept]
    return kept


def score_late(query: FloatArray, documents: Sequence[FloatArray], *, mean: bool) -> FloatArray:
    """MaxSim `[documents]`: for each vector of the query its best match in the document, summed (or averaged).

    Khattab and Zaharia 2020, equation 3. A document or query without vectors scores 0.
    """
    scores = np.zeros(len(documents), np.float32)
    if not len(query):
        return scores
    for index, document in enumerate(documents):
        if len(document):
            scores[index] = (query @ document.T).max(axis=1).sum()
    return scores / np.float32(len(query)) if mean else scores
