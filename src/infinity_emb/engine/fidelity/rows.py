"""Brings each kind of result into rows of numbers that can be compared one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.types import Task

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.backends.base import Arrays

# Vectors compared of a text that gives one a token: enough to meet every window of attention, few enough to compare all
# of them with each other.
SAMPLED_TOKENS = 24
OUTPUTS = {Task.EMBED: "embedding", Task.SPARSE: "sparse", Task.MULTI_VECTOR: "tokens"}
# Kinds of results that are vectors; the others are scores.
VECTORS = frozenset(OUTPUTS)
# Of these, the kinds with one row a text.
ONE_ROW = frozenset({Task.EMBED, Task.SPARSE})


def rows_of(task: Task, outputs: Arrays, place: int, width: int) -> NDArray[Any]:
    """The rows `[rows, width]` of the text at a place of a batch's results, as `Runner` gives them."""
    found = outputs[OUTPUTS.get(task, "logits")][place]
    if task is Task.SPARSE:
        row = np.zeros((1, width), np.float32)
        row[0, outputs["sparse_index"][place]] = found
        return row
    return sampled(found) if task is Task.MULTI_VECTOR else found[None]


def sampled(vectors: NDArray[Any]) -> NDArray[Any]:
    """At most `SAMPLED_TOKENS` rows, evenly spaced, the first and the last among them."""
    count = min(len(vectors), SAMPLED_TOKENS)
    kept: NDArray[Any] = vectors[np.linspace(0, len(vectors) - 1, count).round().astype(int)]
    return kept
