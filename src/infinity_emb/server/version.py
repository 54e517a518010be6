"""The version of the installed package."""

from __future__ import annotations

import functools
from importlib.metadata import version


@functools.cache
def package_version() -> str:
    """As `pip` knows it."""
    return version("infinity_emb")
