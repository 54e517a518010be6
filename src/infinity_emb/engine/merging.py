"""Merges the vectors of a document into fewer: Ward's clustering on the cosine distance (Clavié et al. 2024)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.types import FloatArray


def merge_vectors(vectors: FloatArray, factor: float, protected: int, *, unit: bool) -> FloatArray:
    """About one of `factor` vectors is left; the first `protected` ones stay as they are and come first.

    Args:
        vectors: `[n, dim]`, of unit length.
        factor: At least 1.
        protected: Leading vectors that are not merged.
        unit: Make all results unit length.
    """
    rest = vectors[protected:]
    wanted = max(int(len(rest) // factor), 1)
    merged = vectors
    if wanted < len(rest):
        distances = np.clip(1.0 - rest @ rest.T, 0.0, 2.0).astype(np.float64)
        groups = _clusters(distances, wanted)
        merged = np.concatenate([vectors[:protected], np.stack([rest[group].mean(axis=0) for group in groups])])
    if not unit:
        return merged
    result: FloatArray = merged / np.maximum(np.linalg.norm(merged, axis=1, keepdims=True), 1e-12)
    return result.astype(np.float32)


def _clusters(distances: NDArray[np.float64], wanted: int) -> list[list[int]]:
    """So many groups of rows, in the order in which a walk down the tree numbers them, as SciPy's `fcluster` does."""
    count = len(distances)
    merges = _tree(distances)
    cut = 2 * count - wanted  # nodes from here on are merges that are undone
    members = {index: [index] for index in range(count)}
    for step, (low, high) in enumerate(merges[: count - wanted]):
        members[count + step] = members[low] + members[high]
    groups: list[list[int]] = []
    waiting: list[tuple[int, bool]] = [(2 * count - 2, False)]
    while waiting:
        node, leaves_only = waiting.pop()
        if node < cut:
            groups.append(members[node])
            continue
        children = merges[node - count]
        if leaves_only:
            groups += [[child] for child in children if child < count]
            continue
        waiting.append((node, True))  # single rows come after the groups beside them
        waiting += [(child, False) for child in reversed(children) if child >= count]
    return groups


def _tree(distances: NDArray[np.float64]) -> list[tuple[int, int]]:
    """All merges from the nearest on, each of two nodes; rows are the first nodes (nearest-neighbour chain).

    Murtagh 1983; the distances between clusters follow Ward's rule (Lance and Williams 1967). Changes `distances`.
    """
    count = len(distances)
    np.fill_diagonal(distances, np.inf)
    sizes = np.ones(count)
    alive = np.ones(count, bool)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < count - 1:
        if not chain:
            chain.append(int(alive.argmax()))
        while True:
            row = distances[chain[-1]]
            nearest = int(row.argmin())
            if len(chain) > 1 and row[chain[-2]] <= row[nearest]:
                break
            chain.append(nearest)
        first, second = sorted((chain.pop(), chain.pop()))
        between = distances[first, second]
        merges.append((float(between), first, second))
        with np.errstate(invalid="ignore"):  # infinity less infinity, at rows that are gone
            squares = (
                (sizes[first] + sizes) * distances[first] ** 2
                + (sizes[second] + sizes) * distances[second] ** 2
                - sizes * between**2
            ) / (sizes[first] + sizes[second] + sizes)
        alive[first] = False
        joined = np.where(alive, np.sqrt(np.maximum(squares, 0.0)), np.inf)
        joined[second] = np.inf
        distances[first, :] = distances[:, first] = np.inf
        distances[second, :] = distances[:, second] = joined
        sizes[second] += sizes[first]
    return _numbered(merges, count)


def _numbered(merges: list[tuple[float, int, int]], count: int) -> list[tuple[int, int]]:
    """Merges in the order of their distance, of nodes instead of rows."""
    node = list(range(count))
    numbered = []
    root = list(range(count))
    for step, (_, first, second) in enumerate(sorted(merges, key=lambda merge: merge[0])):
        one, other = _find(root, first), _find(root, second)
        low, high = sorted((node[one], node[other]))
        numbered.append((low, high))
        root[one] = other
        node[other] = count + step
    return numbered


def _find(root: list[int], row: int) -> int:
    while root[row] != row:
        root[row] = root[root[row]]
        row = root[row]
    return row
