"""Results that are equal to the last bit whatever else is asked: every text is computed alone, in a shape of its own.

The libraries choose kernels, and with them the order of additions, by the shape of a batch. Here the shape follows
from the length of the text alone, and no neighbour shares the pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from infinity_emb.backends.base import Backend, Layout

if TYPE_CHECKING:
    from infinity_emb.backends.base import Arrays, BackendReport, Pending

WIDTH_STEP = 16


class DeterministicBackend(Backend):
    """A backend whose batches hold one text each.

    Args:
        backend: Computes; closed with this one.
    """

    name: ClassVar[str] = "deterministic"

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name = backend.name  # type: ignore[misc]  # it is shown, and what computes is the other one
        longest = backend.layout.widths[-1]
        self._layout = backend.layout
        if backend.layout.max_rows == 1:  # texts are alone already, and may have to be without padding
            return
        self._layout = Layout(
            widths=(*range(WIDTH_STEP, longest, WIDTH_STEP), longest),
            batch_tokens=backend.layout.batch_tokens,
            segments_per_row=1,
            segment_steps=(1,),
            max_rows=1,
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        """Those of the backend."""
        return self._backend.inputs

    @property
    def layout(self) -> Layout:
        """One text a batch, in one of a few widths."""
        return self._layout

    @property
    def report(self) -> BackendReport:
        """That of the backend."""
        return self._backend.report

    def start(self, arrays: Arrays) -> Pending:
        """Begin one forward pass."""
        return self._backend.start(arrays)

    def close(self) -> None:
        """Close the backend."""
        self._backend.close()
