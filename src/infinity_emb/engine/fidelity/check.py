"""Compares a loaded backend with the reference, once for each model, engine, number format and set of libraries."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.engine.fidelity.measure import measure
from infinity_emb.engine.fidelity.reference import compute_reference
from infinity_emb.engine.fidelity.rows import ONE_ROW
from infinity_emb.errors import InfinityError, LoadError
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.backends.base import Backend, BackendOptions
    from infinity_emb.engine.fidelity.figures import Figures
    from infinity_emb.engine.fidelity.record import Records
    from infinity_emb.engine.fidelity.reference import Reference
    from infinity_emb.models.features import Features
    from infinity_emb.models.fingerprint import Fingerprints
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import Dtype

_log = logging.getLogger("infinity_emb")
# A start does not wait longer than this for hashes only to find out that nothing was measured earlier.
EARLY_WAIT_S = 0.05
SMALLEST_LENGTH = 1e-6


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way to compute a model.

    Attributes:
        dtype: Number format; `auto` is what the backend takes by itself.
        onnx_file: ONNX file used, or None.
        optional: True if nobody asked for it: where it cannot be loaded, the next one is tried.
    """

    dtype: Dtype
    onnx_file: str | None
    optional: bool = False


class SelfCheck:
    """The check of one model.

    Args:
        spec: The checkpoint.
        probes: Reads the fixed inputs.
        options: How its backend is loaded, but for the number format.
        context: What else tells one measurement from another, such as the engine's name.
        fingerprints: Of the checkpoint.
        records: Earlier figures.
    """

    def __init__(
        self,
        spec: ModelSpec,
        probes: Callable[[], list[Features]],
        options: BackendOptions,
        context: tuple[str, ...],
        fingerprints: Fingerprints,
        records: Records,
    ) -> None:
        self._spec = spec
        self._probes = probes
        self._options = options
        self._context = context
        self._fingerprints = fingerprints
        self._records = records
        self._reference: Reference | None = None
        self.model_id = spec.checkpoint.model_id
        if spec.reads is not Modality.TEXT:
            self.model_id += f" ({spec.reads})"

    def early(self, attempt: Attempt) -> Figures | None:
        """Figures of an earlier start, if they can be had at once."""
        return self._records.read(self._facts(attempt)) if self._fingerprints.ready(EARLY_WAIT_S) else None

    def figures(self, attempt: Attempt, backend: Backend) -> Figures | None:
        """Figures of an earlier start, or of now; None if there is nothing to compare with, which is logged.

        Raises:
            LoadError: The backend, or the reference, fails on the probes.
        """
        facts = self._facts(attempt)
        known = self._records.read(facts)
        if known is not None:
            return known
        try:
            found = self._measure(backend)
        except (RuntimeError, ValueError) as error:
            if isinstance(error, LoadError):
                raise
            reason = error.message if isinstance(error, InfinityError) else f"{type(error).__name__}: {error}"
            raise LoadError(
                f"{self.model_id} loads, but fails on the inputs of the self-check: {reason} "
                "Try another --engine, or switch the check off with --fidelity 0."
            ) from error
        if found is not None:
            self._records.write(facts, found)
        return found

    def _measure(self, backend: Backend) -> Figures | None:
        items = self._probes()
        if not items:
            _log.warning("no self-check: %s makes no tokens of any of its inputs", self.model_id)
            return None
        if self._reference is None:
            self._reference = compute_reference(self._spec, self._options, items)
        if self._reference is None:
            return None
        task, reference = self._spec.task, self._reference
        if task in ONE_ROW:  # a vector without length has no direction to compare, and is not served either
            usable = np.linalg.norm(reference.outputs, axis=1) > SMALLEST_LENGTH
            items = [item for item, use in zip(items, usable, strict=True) if use]
            reference = replace(reference, outputs=reference.outputs[usable])
        return measure(backend, task, items, reference) if items else None

    def _facts(self, attempt: Attempt) -> list[str]:
        dtype = str(attempt.dtype)
        return [self._fingerprints.of(dtype, attempt.onnx_file), str(self._options.device), dtype, *self._context]
