"""Runs the probes through a loaded backend as the scheduler would, together and alone, and compares."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.engine.fidelity.figures import compare_scores, compare_vectors, worst
from infinity_emb.engine.fidelity.rows import VECTORS, rows_of
from infinity_emb.errors import BackendError
from infinity_emb.scheduler.batcher import Batcher
from infinity_emb.scheduler.request import Request
from infinity_emb.scheduler.runner import Runner
from infinity_emb.types import Priority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from infinity_emb.backends.base import Backend
    from infinity_emb.engine.fidelity.figures import Figures
    from infinity_emb.engine.fidelity.reference import Reference
    from infinity_emb.models.features import Features
    from infinity_emb.types import FloatArray, Task

TOGETHER_ITEMS = 32


def measure(backend: Backend, task: Task, items: Sequence[Features], reference: Reference) -> Figures:
    """The worse of both: all inputs in as few batches as they fit in, and each in a batch of its own.

    Raises:
        BackendError: The backend returns too few results or results of another width than the checkpoint says.
        Exception: Whatever the library raised.
    """
    compare = compare_vectors if task in VECTORS else compare_scores
    width = reference.outputs.shape[1]
    found = [_outputs(backend, task, items, most, width) for most in (TOGETHER_ITEMS, 1)]
    for rows in found:
        if rows.shape != reference.outputs.shape:
            raise BackendError(
                f"The backend returns {list(rows.shape)} numbers for the probes, the checkpoint says "
                f"{list(reference.outputs.shape)}; this is a bug."
            )
    return worst([compare(rows, reference.outputs, reference.words) for rows in found])


def _outputs(backend: Backend, task: Task, items: Sequence[Features], most: int, width: int) -> FloatArray:
    batcher, runner = Batcher(backend.layout, most), Runner(backend)
    request = Request(items, Future(), None, Priority.BULK)
    batcher.check(request)
    batcher.add(request)
    rows: dict[int, NDArray[np.float32]] = {}
    while (batch := batcher.next_batch(0.0)) is not None:
        outputs = runner.run(batch)
        for place, (_, position) in enumerate(batch.entries):
            rows[position] = rows_of(task, outputs, place, width).astype(np.float32)
    return np.concatenate([rows[position] for position in range(len(items))])
