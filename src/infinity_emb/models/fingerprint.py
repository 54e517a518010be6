"""A short name for everything in a checkpoint that changes a vector or a score.

Two servers with the same fingerprint put the same text into the same place; an index made with another fingerprint must
not be mixed with it. The revision and the folder are left out: another README or another copy changes no vector.
"""

from __future__ import annotations

import hashlib
import json
import logging
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.onnx_files import OWN_FILES, with_data

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")
_RECIPE = 1  # to be raised when the facts below change
_DIGITS = 16
_READ_BYTES = 1 << 22
_SAMPLES, _SAMPLE_BYTES = 64, 1024
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
_OLDER_TOKENIZER_FILES = ("vocab.json", "merges.txt")  # read where there is no tokenizer.json
# What config.json and tokenizer_config.json say about their own history.
_IDLE_KEYS = frozenset({"transformers_version", "torch_dtype", "dtype", "use_cache", "name_or_path", "architectures"})
# Fields of the specification that name places, or are facts for people.
_IDLE_FIELDS = frozenset(
    {
        *("checkpoint", "folder", "config", "weights", "notes", "withheld", "architecture", "similarity_fn", "reads"),
        *("routes", "route"),  # of each route a fingerprint is taken
    }
)
# Those that came after the first fingerprints were given out; they count where they say something.
_LATER_FIELDS = frozenset({"adapters", "heads", "media", "words"})


class Fingerprints:
    """The fingerprints of one checkpoint, by number format; its files are read in a thread of their own from the start.

    Args:
        spec: The checkpoint.
        folder: Where hashes of files are kept; one that cannot be written only costs time.
        onnx_file: The ONNX file that will probably be used, if one was asked for.
    """

    def __init__(self, spec: ModelSpec, folder: Path, onnx_file: str | None) -> None:
        self._spec = spec
        self._hashes = FileHashes(folder)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="infinity-fingerprint")
        self._facts = {onnx_file: self._read(onnx_file)}

    def of(self, dtype: str, onnx_file: str | None) -> str:
        """Sixteen hexadecimal digits; waits until every file has been read.

        Args:
            dtype: Number format of the computation.
            onnx_file: An ONNX file used instead of the checkpoint's own weights.

        Raises:
            CheckpointError: A file cannot be read.
        """
        if onnx_file not in self._facts:
            self._facts[onnx_file] = self._read(onnx_file)
        try:
            facts = self._facts[onnx_file].result()
        except OSError as error:
            raise CheckpointError(f"{error.filename}: the file cannot be read ({error}).") from error
        everything = json.dumps([_RECIPE, dtype, facts], sort_keys=True, default=str)
        return hashlib.sha256(everything.encode()).hexdigest()[:_DIGITS]

    def ready(self, wait_s: float) -> bool:
        """Whether every file has been read, or is within that time."""
        return not wait(self._facts.values(), timeout=wait_s).not_done

    def close(self) -> None:
        """End the thread, at once if it has read everything; else it reads to its end by itself."""
        self._thread.shutdown(wait=self.ready(0))

    def _read(self, onnx_file: str | None) -> Future[dict[str, Any]]:
        return self._thread.submit(checkpoint_facts, self._spec, self._hashes, onnx_file)


class FileHashes:
    """SHA-256 of files, kept on disk by path, size and time of the last change.

    Args:
        folder: Where they are kept; one that cannot be written only costs time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, str] = {}

    def of(self, file: Path) -> str:
        """The hash of a file's bytes.

        Raises:
            OSError: It cannot be read.
        """
        status = file.stat()
        key = hashlib.sha256(f"{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode()).hexdigest()[:32]
        if key not in self._known:
            kept = self._folder / f"{key}.sha256"
            found = _read(kept)
            if found is None:
                found = _digest(file)
                _write(kept, found)
            self._known[key] = found
        return self._known[key]


class FileMarks:
    """Marks of files that are cheap to take: place, size, time of the last change, and samples of the bytes.

    The samples catch another model of the same size that was put in place with its old time stamp.
    """

    def of(self, file: Path) -> str:
        """The mark of a file.

        Raises:
            OSError: It cannot be read.
        """
        status = file.stat()
        digest = hashlib.sha256(f"{file.resolve()} {status.st_size} {status.st_mtime_ns}".encode())
        with file.open("rb") as opened:
            for number in range(_SAMPLES):
                opened.seek(status.st_size * number // _SAMPLES)
                digest.update(opened.read(_SAMPLE_BYTES))
        return digest.hexdigest()


def checkpoint_facts(spec: ModelSpec, hashes: FileHashes | FileMarks, onnx_file: str | None = None) -> dict[str, Any]:
    """What the fingerprint is made of, but for the number format; reads every file once."""
    facts: dict[str, Any] = {
        field.name: _plain(getattr(spec, field.name), hashes)
        for field in fields(spec)
        if field.name not in _IDLE_FIELDS and not (field.name in _LATER_FIELDS and not getattr(spec, field.name))
    }
    facts["config"] = _without_history(spec.config)
    facts["weights"] = [hashes.of(file) for file in _weights(spec, onnx_file)]
    older = () if (spec.folder / "tokenizer.json").is_file() else _OLDER_TOKENIZER_FILES
    for name in (*_TOKENIZER_FILES, *older):
        file = spec.folder / name
        if not spec.folder.name or not file.is_file():
            continue
        facts[name] = _settings(file) if name == "tokenizer_config.json" else hashes.of(file)
    return facts


def _weights(spec: ModelSpec, onnx_file: str | None) -> tuple[Path, ...]:
    if onnx_file is not None:
        places = (Path(onnx_file), spec.folder / onnx_file, spec.checkpoint.path / onnx_file)
        return with_data(places)
    if spec.weights or not spec.folder.name:
        return spec.weights
    return with_data(spec.folder / name for name in OWN_FILES)


def _plain(value: Any, hashes: FileHashes | FileMarks) -> Any:
    """A value of the specification as JSON knows it, a file as the hash of its bytes."""
    if is_dataclass(value):
        parts = {field.name: _plain(getattr(value, field.name), hashes) for field in fields(value)}
        return {"kind": type(value).__name__, **parts}
    if isinstance(value, Path):
        return hashes.of(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [_plain(item, hashes) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item, hashes) for key, item in value.items()}
    return value


def _without_history(config: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in config.items() if key not in _IDLE_KEYS and not key.startswith("_")}


def _settings(file: Path) -> Any:
    try:
        settings = json.loads(file.read_text("utf-8"))
    except ValueError:
        return None  # the tokenizer refuses it by name
    return _without_history(settings) if isinstance(settings, dict) else None


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _read(kept: Path) -> str | None:
    try:
        found = kept.read_text("ascii")
    except (OSError, ValueError):
        return None
    return found if len(found) == 64 else None  # a write that was cut short counts for nothing


def _write(kept: Path, made: str) -> None:
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(made, encoding="ascii")
    except OSError as error:
        _log.debug("hashes cannot be kept in %s (%s); the next start computes them again", kept.parent, error)
