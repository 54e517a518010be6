"""A model that costs nothing: deterministic vectors from token ids, for tests and for measuring everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from infinity_emb.backends.base import Arrays, Backend, BackendOptions, BackendReport, Layout, Pending
from infinity_emb.backends.layout import packed_layout
from infinity_emb.types import Dtype, Task

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

_PRIME = 2654435761  # Knuth's multiplicative hash


class _Done:
    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays

    def result(self) -> Arrays:
        return self._arrays


class DummyBackend(Backend):
    """Each vector depends on its own text's length, first and last token alone."""

    name: ClassVar[str] = "dummy"

    def __init__(self, spec: ModelSpec, options: BackendOptions) -> None:  # noqa: ARG002 - the contract's signature
        self._embeds = spec.task is Task.EMBED
        self._width = spec.dim if self._embeds else len(spec.labels)
        self._frequencies = np.arange(1, self._width + 1, dtype=np.float32)
        self._layout = packed_layout(spec.max_length, 16384)
        self._report = BackendReport("cpu", Dtype.FLOAT32, 0, "dummy", "none")

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("input_ids", "first_index", "last_index")

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def report(self) -> BackendReport:
        return self._report

    def start(self, arrays: Arrays) -> Pending:
        ids = arrays["input_ids"].reshape(-1)
        first, last = arrays["first_index"], arrays["last_index"]
        middle = ids[(first + last) // 2] + 31 * ids[np.maximum(last - 1, first)]
        # never 0, which would be a vector of zeros
        seeds = ((middle + (last - first) * 7919) * _PRIME % 65521 + 1).astype(np.float32) / 65522.0
        values = seeds[:, None] * self._frequencies
        np.sin(values, out=values)
        if not self._embeds:
            return _Done({"logits": values})
        norm = np.sqrt(np.add.reduce(values * values, axis=1, keepdims=True))
        values /= np.maximum(norm, 1e-12)
        return _Done({"embedding": values, "norm": norm})

    def close(self) -> None:
        pass
