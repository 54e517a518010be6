"""Hot path. One forward pass of a batch on one replica: collate, start, finish, check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.errors import BackendError
from infinity_emb.scheduler.collate import Collator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.backends.base import Arrays, Backend, Pending
    from infinity_emb.scheduler.batch import Batch


class Runner:
    """Stateless but for the backend it drives; used by one thread."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.collate = Collator(backend.inputs, backend.layout)

    def start(self, arrays: Arrays) -> Pending:
        """Begin computing collated arrays."""
        return self._backend.start(arrays)

    def finish(self, batch: Batch, pending: Pending) -> Arrays:
        """Wait for the outputs of a batch, without the rows of padding segments.

        Raises:
            BackendError: The library gave back something of another shape.
            Exception: Whatever the library raised.
        """
        count = len(batch.entries)
        outputs: Arrays = {}
        for name, array in pending.result().items():
            if array.ndim != 2 or array.shape[0] < count or array.dtype.kind != "f":
                raise BackendError(
                    f"the backend returned {name!r} as {array.dtype} {list(array.shape)} for {count} texts; "
                    "this is a bug."
                )
            outputs[name] = array[:count]
        return outputs

    def run(self, batch: Batch) -> Arrays:
        """Compute a batch from start to finish."""
        return self.finish(batch, self.start(self.collate(batch)))


def finite_rows(outputs: Arrays, count: int) -> NDArray[np.bool_] | None:
    """Which rows hold only finite numbers; None if all do."""
    good: NDArray[np.bool_] | None = None
    for array in outputs.values():
        # a sum is finite only if every term is (float64 sums of float32 do not overflow)
        with np.errstate(invalid="ignore"):
            total = array.sum(dtype=np.float64)
        if np.isfinite(total):
            continue
        rows: NDArray[np.bool_] = np.asarray(np.isfinite(array).all(axis=1))
        good = rows if good is None else np.logical_and(good, rows)
    return None if good is None or bool(good.all()) else good[:count]
