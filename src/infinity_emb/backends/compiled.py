"""Keeps compiled models on disk, so that a later start maps a file instead of building and compiling a graph.

A file is a line of JSON (what `Kept` says of the model), filled up to a page, and then the library's own bytes. It
appears whole or not at all, and its name is made of everything that went into it, so it is never out of date. Like the
checkpoint itself it is trusted: whoever may write into the folder decides what is served.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.fingerprint import FileMarks, checkpoint_facts
from infinity_emb.models.hub.storage import write_whole
from infinity_emb.models.onnx_files import own_files, with_data
from infinity_emb.models.versions import library_version, source_stamps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")
_PAGE_BYTES = 4096
_MAGIC = "infinity_emb compiled model 1"
# Libraries that write a graph or take part in its export.
_LIBRARIES = ("onnx", "torch", "transformers")
# Our own sources that decide about a graph.
_SOURCES = ("backends", "models/graph", "models/spec")
# Smaller ones are compiled in no time.
WORTHWHILE_BYTES = 8 << 20
MOST_FILES = 16
MOST_BYTES = 16 << 30


@dataclass(frozen=True, slots=True)
class Kept:
    """What must be known of a compiled model beside its bytes.

    Attributes:
        inputs: Names of the arrays it takes.
        outputs: Names of the arrays it returns.
        packed: Rows may hold several texts.
        origin: Where its graph came from, in words.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    packed: bool
    origin: str


def identity(spec: ModelSpec, onnx_file: str | None, surroundings: Sequence[str]) -> str:
    """A name for everything that a compiled model is made of.

    Args:
        spec: The checkpoint; its files count by path, size, time of change and samples of their bytes.
        onnx_file: The ONNX file that was asked for, if one was.
        surroundings: The library, its settings and the machine.

    Raises:
        OSError: A file of the checkpoint cannot be read.
    """
    marks = FileMarks()
    facts = checkpoint_facts(spec, marks, onnx_file)
    offered = [marks.of(file) for place in own_files(spec) for file in with_data([place])]
    own_code = (*map(library_version, _LIBRARIES), *source_stamps(*_SOURCES))
    everything = json.dumps(
        [facts, spec.config, str(spec.reads), offered, onnx_file, *surroundings, *own_code],
        sort_keys=True,
        default=str,
    )
    return hashlib.sha256(json.dumps(everything, sort_keys=True, default=str).encode()).hexdigest()[:32]


class CompiledModels:
    """Compiled models by identity.

    Args:
        folder: Where they are kept; made when needed. One that cannot be written only costs time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> tuple[Kept, NDArray[np.uint8]] | None:
        """A model compiled earlier, its bytes mapped into memory; None if there is none."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                kept = _parse(file.read(_PAGE_BYTES), path.stat().st_size)
            # copy on write: nothing that the library does can reach the file
            blob = np.memmap(path, np.uint8, mode="c", offset=_PAGE_BYTES)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as error:
            _log.warning("the compiled model %s cannot be used (%s); it is compiled again", path, error)
            return None
        self._touch(path)
        return kept, blob

    def write(self, name: str, kept: Kept, blob: bytes | memoryview) -> None:
        """Keep a model, and make room by removing those that were used longest ago."""
        head = json.dumps({"magic": _MAGIC, "size": _PAGE_BYTES + len(blob), **asdict(kept)}).encode()
        if len(head) > _PAGE_BYTES:
            raise ValueError(f"this is a bug: a head of {len(head)} bytes; please report it")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(self._path(name), head.ljust(_PAGE_BYTES, b"\0"), blob)
            self._make_room()
        except OSError as error:
            _log.info("the compiled model cannot be kept in %s (%s); every start compiles it", self._folder, error)

    def forget(self, name: str) -> None:
        """Remove a model that the library refused."""
        try:
            self._path(name).unlink(missing_ok=True)
        except OSError as error:
            _log.info("%s cannot be removed (%s)", self._path(name), error)

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.model"

    def _touch(self, path: Path) -> None:
        """Those that were used longest ago are removed first."""
        try:
            os.utime(path)
        except OSError as error:
            _log.debug("the time of use of %s cannot be noted (%s)", path, error)

    def _make_room(self) -> None:
        """Keep the newest files within the bounds; drafts of processes that were killed go after a day."""
        files = sorted(
            ((status.st_mtime, status.st_size, path) for path in self._folder.iterdir() if (status := path.stat())),
            reverse=True,
        )
        newest = files[0][0]
        held_bytes = 0
        for number, (changed, size, path) in enumerate(files):
            held_bytes += size
            stale = path.suffix == ".draft" and newest - changed > 86_400
            if stale or (number > 0 and (number >= MOST_FILES or held_bytes > MOST_BYTES)):
                path.unlink(missing_ok=True)


def _parse(head: bytes, size: int) -> Kept:
    facts = json.loads(head.rstrip(b"\0"))
    if facts.pop("magic") != _MAGIC or facts.pop("size") != size:
        raise ValueError("it is not whole, or of another version")
    return Kept(tuple(facts.pop("inputs")), tuple(facts.pop("outputs")), **facts)
