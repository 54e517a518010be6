"""Compares with the same model computed in float64, from which the reference in float32 is some way off itself."""

from __future__ import annotations

import numpy as np

import measured

TOLERANCE = 1e-5


def check(kind, row, engine, found, reference, exact, *, size=1.0):
    """Numbers that may be larger than 1 are allowed 1e-5 and 1e-5 of their size; the table shows plain distances.

    Args:
        kind: Of the row in docs/models.md.
        row: Its name.
        engine: That computed `found`.
        found: Numbers of this engine.
        reference: Those of the reference in float32.
        exact: Those of the reference in float64.
        size: Of what they are differences of, where that is larger.
    """
    reference, exact = np.asarray(reference), np.asarray(exact)
    assert exact.dtype == np.float64, "the truth must be finer than what is compared with it"
    measured.note(kind, row, engine, abs(found - exact).max())
    measured.note(kind, row, measured.REFERENCE, abs(reference - exact).max())
    np.testing.assert_allclose(found, exact, atol=TOLERANCE * max(1.0, size), rtol=TOLERANCE)
