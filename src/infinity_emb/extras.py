"""Optional imports, each with the line that installs what is missing."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

# Libraries that tell their maker over the network that they are imported, and the package through which they do it.
# Where that package is not installed they keep silent.
_REPORTERS = {"openvino": "openvino_telemetry"}


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
        return _import_silently(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtraError(
            f"{purpose} needs the package {package!r}, which cannot be imported ({error}). "
            f'Install it with: pip install "infinity_emb[{extra}]"',
            param=package,
        ) from error


def _import_silently(module: str) -> ModuleType:
    reporter = _REPORTERS.get(module.partition(".")[0])
    if reporter is None:
        return importlib.import_module(module)
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None: "not installed"
    before = modules.get(reporter)
    modules[reporter] = None
    try:
        return importlib.import_module(module)
    finally:
        del modules[reporter]
        if before is not None:
            modules[reporter] = before
