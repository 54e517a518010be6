"""Optional imports, each with the line that installs what is missing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType


def require(module: str, extra: str, purpose: str) -> ModuleType | Any:
    """Import an optional package.

    Args:
        module: Name to import.
        extra: The extra of this package that installs it.
        purpose: What it is needed for, to complete "… needs".

    Raises:
        MissingExtraError: It is not installed; the message holds the line that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which cannot be imported ({error}). "
            f'Install it with: pip install "infinity_emb[{extra}]"',
            param=package,
        ) from error
