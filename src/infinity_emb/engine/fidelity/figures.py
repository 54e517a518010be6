"""How far results are from the reference, in a few numbers, and whether that is near enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from infinity_emb.types import FloatArray

NEIGHBOURS = 10
# Similarities this close are a tie: either order is right.
TIE = 1e-6


@dataclass(frozen=True, slots=True)
class Figures:
    """Result of one comparison.

    Attributes:
        probes: Inputs compared.
        max_abs_error: Largest difference of a number.
        max_relative_error: Largest length of a difference, as a share of the length of the reference.
        min_cosine: Smallest cosine of a vector and its reference; for scores that of all of them as one vector.
        top_agreement: Share of the ten nearest (or highest scored) probes that are the reference's.
        reference: What was compared with, in words.
    """

    probes: int
    max_abs_error: float
    max_relative_error: float
    min_cosine: float
    top_agreement: float
    reference: str

    def passes(self, bar: float) -> bool:
        """Whether the cosine reaches the bar, and no length is off by more than that cosine would be.

        Two unit vectors of cosine c are `√(2 - 2c)` apart. Numbers that are not finite never pass.
        """
        return self.min_cosine >= bar and self.max_relative_error <= math.sqrt(2.0 - 2.0 * bar)

    def facts(self, prefix: str = "") -> dict[str, str | int | float]:
        """For the model's card; `prefix` tells those of images or sounds from those of texts."""
        return {
            f"{prefix}fidelity_min_cosine": self.min_cosine,
            f"{prefix}fidelity_max_abs_error": self.max_abs_error,
            f"{prefix}fidelity_top{NEIGHBOURS}_agreement": self.top_agreement,
            f"{prefix}fidelity_reference": self.reference,
        }

    def __str__(self) -> str:
        return (
            f"min cosine {self.min_cosine:.7f}, max error {self.max_abs_error:.2e}, "
            f"top-{NEIGHBOURS} agreement {self.top_agreement:.3f}"
        )


def worst(figures: list[Figures]) -> Figures:
    """The least favourable number of each kind; of a number that is not finite nothing is less favourable."""
    return Figures(
        probes=figures[0].probes,
        max_abs_error=_largest(one.max_abs_error for one in figures),
        max_relative_error=_largest(one.max_relative_error for one in figures),
        min_cosine=-_largest(-one.min_cosine for one in figures),
        top_agreement=-_largest(-one.top_agreement for one in figures),
        reference=figures[0].reference,
    )


def compare_vectors(found: FloatArray, wanted: NDArray[np.float64], reference: str) -> Figures:
    """Figures of vectors `[probes, dim]`."""
    exact = found.astype(np.float64)
    lengths = np.linalg.norm(wanted, axis=1)
    apart = np.linalg.norm(exact - wanted, axis=1)
    return Figures(
        probes=len(wanted),
        max_abs_error=float(np.abs(exact - wanted).max()),
        max_relative_error=float((apart / np.maximum(lengths, 1e-12)).max()),
        min_cosine=float(_cosines(exact, wanted).min()),
        top_agreement=_vector_agreement(exact, wanted),
        reference=reference,
    )


def compare_scores(found: FloatArray, wanted: NDArray[np.float64], reference: str) -> Figures:
    """Figures of logits `[probes, labels]`; errors count as a share of the largest logit, or of 1 if all are small."""
    exact = found.astype(np.float64)
    error = float(np.abs(exact - wanted).max())
    agreements = [
        _agreement(exact[:, label], wanted[:, label], min(NEIGHBOURS, len(wanted))) for label in range(wanted.shape[1])
    ]
    return Figures(
        probes=len(wanted),
        max_abs_error=error,
        max_relative_error=error / max(1.0, float(np.abs(wanted).max())),
        min_cosine=float(_cosines(exact.reshape(1, -1), wanted.reshape(1, -1)).min()),
        top_agreement=float(np.mean(agreements)),
        reference=reference,
    )


def _cosines(found: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Row by row; two vectors without length agree."""
    lengths = np.linalg.norm(found, axis=1), np.linalg.norm(wanted, axis=1)
    empty = (lengths[0] == 0) & (lengths[1] == 0)
    products = (found * wanted).sum(axis=1) / np.maximum(lengths[0] * lengths[1], 1e-300)
    return np.where(empty, 1.0, products)


def _vector_agreement(found: NDArray[np.float64], wanted: NDArray[np.float64]) -> float:
    near = [_similarities(rows) for rows in (found, wanted)]
    count = len(wanted)
    shares = []
    for row in range(count):
        others = np.arange(count) != row
        shares.append(_agreement(near[0][row][others], near[1][row][others], min(NEIGHBOURS, count - 1)))
    return float(np.mean(shares)) if shares else 1.0


def _similarities(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    units = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    result: NDArray[np.float64] = units @ units.T
    return result


def _agreement(found: NDArray[np.float64], wanted: NDArray[np.float64], count: int) -> float:
    """Share of the `count` highest of `found` that are among the highest of `wanted`."""
    if count < 1:
        return 1.0
    if not np.isfinite(found).all():
        return 0.0
    lowest = np.sort(wanted)[-count]
    chosen = np.argsort(-found, kind="stable")[:count]
    return float((wanted[chosen] >= lowest - TIE).mean())


def _largest(numbers: Iterable[float]) -> float:
    return float(np.max(np.array(list(numbers), np.float64)))  # NaN wins in numpy
