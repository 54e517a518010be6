"""Keeps the figures of a self-check on disk, so that later starts read a small file instead of computing."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import platform
from dataclasses import asdict
from typing import TYPE_CHECKING

from infinity_emb.engine.fidelity.figures import Figures
from infinity_emb.engine.fidelity.probes import PROBES, QUERY
from infinity_emb.models.versions import library_version, source_stamps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_log = logging.getLogger("infinity_emb")
_LIBRARIES = ("openvino", "onnxruntime", "torch", "transformers", "tokenizers", "numpy")
# Sources that decide about a result; a change of any of them asks for a new check.
_SOURCES = ("backends", "engine/fidelity", "models", "scheduler")


class Records:
    """Figures by what they were measured on.

    Args:
        folder: Where they are kept; made when needed. One that cannot be written only costs time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, facts: Sequence[str]) -> Figures | None:
        """Figures measured earlier on the same facts, with the same libraries and code."""
        try:
            return Figures(**json.loads(self._path(facts).read_text("utf-8")))
        except (OSError, ValueError, TypeError):
            return None  # none, or not one of ours: it is measured again

    def write(self, facts: Sequence[str], figures: Figures) -> None:
        """Keep figures; whole or not at all."""
        path = self._path(facts)
        half_done = path.with_suffix(f".{platform.node()}.{id(figures)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            half_done.write_text(json.dumps(asdict(figures)), encoding="utf-8")
            half_done.replace(path)
        except OSError as error:
            _log.debug("the self-check cannot be kept in %s (%s); the next start repeats it", path.parent, error)

    def _path(self, facts: Sequence[str]) -> Path:
        everything = json.dumps([*facts, *_surroundings()])
        return self._folder / f"{hashlib.sha256(everything.encode()).hexdigest()[:32]}.json"


@functools.cache
def _surroundings() -> list[str]:
    """Machine, libraries, probes and our own code."""
    versions = (library_version(name) for name in _LIBRARIES)
    return [platform.machine(), *PROBES, QUERY, *versions, *source_stamps(*_SOURCES)]
