"""Checks on values that already have the right type: each returns what is wrong, or None."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def at_least(lowest: int) -> Callable[[float], str | None]:
    """The value, or each of several, has to reach `lowest`."""

    def check(value: float) -> str | None:
        return None if value >= lowest else f"{value} is too small; it must be {lowest} or more"

    return check


def positive(value: float) -> str | None:
    """Above zero."""
    return None if value > 0 else f"{value} is too small; it must be greater than 0"


def share(value: float) -> str | None:
    """From 0 to below 1."""
    return None if 0 <= value < 1 else f"{value} is out of range; it must be 0 or more and less than 1"


def port_number(value: int) -> str | None:
    """A TCP port; 0 lets the system choose one."""
    return None if 0 <= value <= 65535 else f"{value} is no port; it must be 0 to 65535"


def not_blank(value: str) -> str | None:
    """Some text."""
    return None if value.strip() else "it must not be empty"


def url_prefix(value: str) -> str | None:
    """Empty, or a path that starts but does not end with a slash."""
    if value in {"", "/"} or (value.startswith("/") and not value.endswith("/")):
        return None
    return f"{value!r} must start with '/' and must not end with '/', such as /v1; empty for none"


def redirect_target(value: str) -> str | None:
    """Empty, or an absolute path."""
    return None if not value or value.startswith("/") else f"{value!r} must start with '/'; empty switches it off"


def readable_file(value: str) -> str | None:
    """A file that exists."""
    return None if Path(value).is_file() else f"there is no file {value!r}"
