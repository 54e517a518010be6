"""What was fetched."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Media:
    """Bytes of one image or sound, not yet decoded.

    Attributes:
        content: The file.
        content_type: What the source calls it, in lower case, without parameters; empty if it says nothing.
    """

    content: bytes
    content_type: str
