"""The version of the installed package."""

from __future__ import annotations

import functools


@functools.cache
def package_version() -> str:
    """As `pip` knows it."""
    from importlib.metadata import version  # noqa: PLC0415 - 20 ms of a start, where nobody asks

    return version("infinity_emb")
