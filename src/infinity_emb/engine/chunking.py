"""Long texts: vectors of spans of a text that was computed as one (late chunking), and means over pieces of one."""

from __future__ import annotations

from dataclasses import replace
from itertools import dropwhile
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.engine.fidelity import tail
from infinity_emb.errors import CapabilityError
from infinity_emb.models.spec.model import NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.models.spec.token_weights import WeighedPoolingSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.backends.base import Arrays
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import FloatArray


def check_late_chunking(spec: ModelSpec, name: str) -> None:
    """Raise `CapabilityError` unless the model pools by the mean, which alone has a meaning for part of a text."""
    pooling = spec.pooling
    if pooling is None or pooling.modes != (PoolingMode.MEAN,) or not tail.has_tail(spec):
        found = "nothing" if pooling is None else "+".join(mode.value for mode in pooling.modes)
        if isinstance(pooling, WeighedPoolingSpec):
            found += " of weighed words"
        raise CapabilityError(
            f"The model {name!r} cannot embed chunks in their context (late chunking): that needs mean pooling, and it "
            f"pools by {found}. Send each chunk as an input of its own.",
            param="late_chunking",
        )


def embed_spans(spec: ModelSpec, tokens: Sequence[FloatArray], spans: Sequence[Sequence[tuple[int, int]]]) -> Arrays:
    """The outputs of an embedder for every span of every text, in order.

    Args:
        spec: The checkpoint; its modules from pooling on are applied.
        tokens: States of each text `[tokens, width]`, those before pooling.
        spans: For each text the first token of every span and the one behind it.
    """
    behind = tuple(dropwhile(lambda module: not isinstance(module, PoolingSpec), spec.modules))
    unit = isinstance(behind[-1], NormalizeSpec)
    bare = replace(spec, modules=behind[:-1] if unit else behind)
    rows = [
        tail.embed(bare, states[start:stop].astype(np.float64), 0)
        for states, places in zip(tokens, spans, strict=True)
        for start, stop in places
    ]
    vectors = np.stack(rows)
    if not unit:
        return {"embedding": vectors.astype(np.float32)}
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return {"embedding": (vectors / norms).astype(np.float32), "norm": norms.astype(np.float32)}


def average_pieces(vectors: FloatArray, tokens: Sequence[int], counts: Sequence[int], *, unit: bool) -> Arrays:
    """The outputs of an embedder for texts that were read in pieces.

    Args:
        vectors: Of all pieces `[pieces, dim]`, as the model gives them.
        tokens: Of each piece, its weight.
        counts: Pieces of each text.
        unit: The model gives unit vectors: the mean is made one too, and its length kept as `norm`.
    """
    ends = np.cumsum(counts)
    means = np.empty((len(counts), vectors.shape[1]), np.float32)
    for index, (end, count) in enumerate(zip(ends, counts, strict=True)):
        part = slice(end - count, end)
        means[index] = vectors[end - 1] if count == 1 else np.average(vectors[part], axis=0, weights=tokens[part])
    if not unit:
        return {"embedding": means}
    norms = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12).astype(np.float32)
    return {"embedding": means / norms, "norm": norms}
