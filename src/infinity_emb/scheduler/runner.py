"""Hot path. One forward pass of a batch on one replica: collate, start, finish, check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.backends.memory import read_memory
from infinity_emb.errors import BackendError
from infinity_emb.scheduler.collate import Collator
from infinity_emb.scheduler.memory import MemoryModel
from infinity_emb.scheduler.ragged import RAGGED, split_outputs

if TYPE_CHECKING:
    from infinity_emb.backends.base import Arrays, Backend, Pending
    from infinity_emb.scheduler.batch import Batch

SMALLEST_NORM = 1e-12  # backends divide by nothing smaller: the norm of a vector of zeros


class Runner:
    """Stateless but for the backend it drives and what it learns of its memory; used by one thread."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.memory = MemoryModel(read_memory if backend.report.device == "cpu" else None)
        self.collate = Collator(backend.inputs, backend.layout)

    def start(self, arrays: Arrays) -> Pending:
        """Begin computing collated arrays."""
        return self._backend.start(arrays)

    def finish(self, batch: Batch, pending: Pending) -> Arrays:
        """Wait for the outputs of a batch, without the rows of padding segments.

        Raises:
            BackendError: The library gave back something of another shape, or numbers that cannot be used.
            Exception: Whatever the library raised.
        """
        count = len(batch.entries)
        outputs: Arrays = {}
        found = pending.result()
        self.memory.observe(batch.rows * batch.width)
        ragged = {name: array for name, array in found.items() if name in RAGGED}
        for name, array in found.items() if len(ragged) < len(found) else ():
            if name in ragged:
                continue
            if array.ndim != 2 or array.shape[0] < count or array.dtype.kind != "f":
                raise BackendError(
                    f"the backend returned {name!r} as {array.dtype} {list(array.shape)} for {count} texts; "
                    "this is a bug."
                )
            outputs[name] = array[:count]
        _check_numbers(outputs, batch)
        return outputs | split_outputs(batch, ragged) if ragged else outputs

    def close(self) -> None:
        """Give the memory of the model back."""
        self._backend.close()

    def run(self, batch: Batch) -> Arrays:
        """Compute a batch from start to finish."""
        return self.finish(batch, self.start(self.collate(batch)))


def _check_numbers(outputs: Arrays, batch: Batch) -> None:
    """Raise if a number cannot be used.

    Which text is at fault shows only when it is computed alone: in a packed batch one NaN reaches the texts beside it.
    """
    for array in outputs.values():
        if not np.isfinite(array).all():
            raise BackendError("the result holds numbers that are not finite (NaN or infinity).")
    norm = outputs.get("norm")
    if norm is None or (norm > SMALLEST_NORM).all():
        return
    directed = np.array([not request.items[position].empty for request, position in batch.entries])
    if (norm[directed] <= SMALLEST_NORM).any():
        raise BackendError("the vector has length zero, and so no direction.")
