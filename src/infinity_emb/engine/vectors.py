"""Hot path. From a model's outputs to the vectors and scores that a caller asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.errors import DimensionsError
from infinity_emb.models.spec.model import Activation

if TYPE_CHECKING:
    from infinity_emb.backends.base import Arrays
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import EmbedOptions, FloatArray


def check_dimensions(spec: ModelSpec, dimensions: int | None) -> None:
    """Raise `DimensionsError` if the model cannot return so many; None and 0 are its native size."""
    if dimensions and not 1 <= dimensions <= spec.dim:
        raise DimensionsError(
            f"dimensions must be between 1 and {spec.dim} for this model, not {dimensions}; "
            "leave it out for full vectors.",
            param="dimensions",
        )


def finish_vectors(outputs: Arrays, spec: ModelSpec, options: EmbedOptions) -> FloatArray:
    """Vectors `[items, dim]` with the caller's `normalize` and `dimensions`.

    Order of sentence-transformers: slice, then normalise. A slice of a unit vector is made unit again.
    """
    vectors: FloatArray = outputs["embedding"]
    unit = spec.normalized
    wanted = unit if options.normalize is None else options.normalize
    if unit and not wanted:
        vectors = vectors * outputs["norm"]
    kept = options.dimensions or spec.truncate_dim or spec.dim
    if kept < vectors.shape[1]:
        vectors = np.ascontiguousarray(vectors[:, :kept])
        unit = False
    if wanted and not unit:
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = vectors / np.maximum(norms, 1e-12)
    return vectors


def activate(logits: FloatArray, activation: Activation) -> FloatArray:
    """Turn float32 logits `[items, labels]` into scores; raises `ValueError` for what is no scoring function."""
    if activation is Activation.IDENTITY:
        return logits
    if activation is Activation.SIGMOID:
        return sigmoid(logits)
    if activation is Activation.SOFTMAX:
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        result: FloatArray = powers / powers.sum(axis=1, keepdims=True)
        return result
    raise ValueError(f"{activation} does not turn logits into scores; this is a bug.")


def sigmoid(logits: FloatArray) -> FloatArray:
    """`1 / (1 + exp(-x))` without overflow, in float32."""
    powers = np.exp(-np.abs(logits))
    result: FloatArray = np.where(logits >= 0, 1.0 / (1.0 + powers), powers / (1.0 + powers)).astype(np.float32)
    return result
