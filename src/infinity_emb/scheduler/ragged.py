"""Hot path of models whose results differ in length: cuts a batch's output into one array for each text.

Such outputs are arrays of objects, `[texts]`, so that they are stored and handed out like all others.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from infinity_emb.backends.base import Arrays
    from infinity_emb.scheduler.batch import Batch


def split_outputs(batch: Batch, outputs: Arrays) -> Arrays:
    """The outputs of `RAGGED` cut up; nothing in them is shared with the backend.

    Raises:
        BackendError: An output has another shape, or numbers that are not finite.
    """
    made: Arrays = {}
    for name, array in outputs.items():
        rows, split = RAGGED[name]
        least, most = _expected(rows, batch)
        if array.ndim != 2 or not least <= array.shape[0] <= most or array.dtype.kind != "f":
            raise BackendError(f"the backend returned {name!r} as {array.dtype} {list(array.shape)}; this is a bug.")
        if not np.isfinite(array.sum(dtype=np.float64)):
            raise BackendError("the result holds numbers that are not finite (NaN or infinity).")
        made.update(split(batch, array))
    return made


def _expected(rows: str, batch: Batch) -> tuple[int, float]:
    """Least and largest number of rows of an output; segments may be padded up."""
    if rows == "segments":
        return len(batch.entries), math.inf
    count = batch.rows if rows == "rows" else batch.rows * batch.width
    return count, count


def _tokens(batch: Batch, array: NDArray[Any]) -> Arrays:
    """`[slots, dim]` → a matrix `[tokens, dim]` a text."""
    return {"tokens": _slots(batch, array, "tokens")}


def _token_weights(batch: Batch, array: NDArray[Any]) -> Arrays:
    """`[slots, 1]` → the weights `[tokens]` of each text's tokens."""
    return {"token_weights": _slots(batch, array[:, 0], "token_weights")}


def _slots(batch: Batch, array: NDArray[Any], name: str) -> NDArray[Any]:
    """The slots of each text; nothing where nobody asked for them, since they are many."""
    return _objects(
        [
            array[start : start + request.costs[position]].copy() if request.wants(name) else array[:0]
            for start, (request, position) in zip(batch.starts, batch.entries, strict=True)
        ]
    )


def _sparse(batch: Batch, array: NDArray[Any]) -> Arrays:
    """`[rows, vocabulary]` → the numbers of the words that weigh something, ascending, and their weights."""
    return _weighed([array[start // batch.width] for start in batch.starts])


def _codes(batch: Batch, array: NDArray[Any]) -> Arrays:
    """`[segments, codes]` → the same as `_sparse`, without the rows of padding segments."""
    return _weighed(list(array[: len(batch.entries)]))


def _weighed(rows: list[NDArray[Any]]) -> Arrays:
    words = [np.flatnonzero(row) for row in rows]
    return {
        "sparse": _objects([row[index] for row, index in zip(rows, words, strict=True)]),
        "sparse_index": _objects(words),
    }


def _objects(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    made = np.empty(len(arrays), object)
    for index, array in enumerate(arrays):
        made[index] = array
    return made


# output → what its rows are, and how it is cut up
RAGGED: dict[str, tuple[str, Callable[[Batch, NDArray[Any]], Arrays]]] = {
    "tokens": ("slots", _tokens),
    "token_weights": ("slots", _token_weights),
    "sparse": ("rows", _sparse),
    "codes": ("segments", _codes),
}
