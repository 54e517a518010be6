"""What fetching a model yields: a folder on this machine and where it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model repository on the local disk.

    Attributes:
        path: Folder that holds the repository's files.
        model_id: What was asked for: a repository id or a folder.
        source: Where the files came from, in words ("local folder", "Hugging Face hub (cached)" …).
        revision: Resolved commit, or None where there is none (a local folder).
    """

    path: Path
    model_id: str
    source: str
    revision: str | None = None
