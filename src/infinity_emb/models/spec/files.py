"""Opens a repository's configuration files and reads typed fields, so that every fault names file, field and fix."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Any, TypeVar

from infinity_emb.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from infinity_emb.models.hub.checkpoint import Checkpoint

Choice = TypeVar("Choice")

# Half of a surrogate pair: JSON can write one, no file system can.
_HALF_PAIR = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A JSON object of the repository.

    Attributes:
        name: Path inside the repository, for messages.
        data: Its content; empty if the file does not exist.
        exists: Whether it does.
    """

    name: str
    data: dict[str, Any]
    exists: bool = True

    def error(self, field: str, reason: str) -> CheckpointError:
        """A fault of one field; `reason` says what is wrong, allowed, and how to fix it."""
        where = f"{self.name}: {field}" if field else self.name
        return CheckpointError(f"{where}: {reason}", param=f"{self.name}:{field}" if field else self.name)

    def whole(self, field: str, *, least: int = 1) -> int | None:
        """A whole number of at least `least`; None if the field is absent or null."""
        value = self.data.get(field)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():  # 1e30 is how "no limit" is written
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(field, f"{value!r} is not a whole number of at least {least}. Correct the file.")
        return value

    def needed_whole(self, field: str) -> int:
        """Like `whole`, but the field must be there."""
        value = self.whole(field)
        if value is None:
            raise self.error(field, "the field is missing. Add it, or download the file again.")
        return value

    def flag(self, field: str, *, default: bool) -> bool:
        """True or false."""
        value = self.data.get(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(field, f"{value!r} is neither true nor false. Correct the file.")
        return value

    def text(self, field: str) -> str | None:
        """A string; None if the field is absent or null."""
        value = self.data.get(field)
        if value is not None and not isinstance(value, str):
            raise self.error(field, f"{value!r} is not a string. Correct the file.")
        return value

    def choice(self, field: str, allowed: Mapping[str, Choice], default: Choice) -> Choice:
        """One of the keys of `allowed`, as its value; `default` if the field is absent or null."""
        value = self.text(field)
        if value is None:
            return default
        if value not in allowed:
            raise self.error(field, f"{value!r} is not supported. Supported: {', '.join(allowed)}.")
        return allowed[value]

    def section(self, field: str) -> ConfigFile:
        """A nested object; empty if the field is absent or null."""
        value = self.data.get(field)
        if value is not None and not isinstance(value, dict):
            raise self.error(field, f"{value!r} is not an object. Correct the file.")
        return ConfigFile(self.name, value or {}, exists=value is not None)


@dataclass(frozen=True, slots=True)
class Repository:
    """A checkpoint's files, and what may be read from them.

    Attributes:
        checkpoint: Where they are.
        allow_pickle: Accept weights that exist only as pickles.
    """

    checkpoint: Checkpoint
    allow_pickle: bool = False

    def path(self, *parts: str) -> Path:
        """A path inside the repository; `parts` may hold slashes."""
        return self.checkpoint.path.joinpath(*parts)

    def config(self, name: str, *, required: bool = False) -> ConfigFile:
        """Open a JSON object; an absent file is an empty one unless it is required."""
        data = self.json(name)
        if data is None and not required:
            return ConfigFile(name, {}, exists=False)
        if data is None:
            raise missing(name, f"It belongs into {self.checkpoint.path}")
        if not isinstance(data, dict):
            raise CheckpointError(f"{name}: expected a JSON object, found {type(data).__name__}.", param=name)
        return ConfigFile(name, data)

    def json(self, name: str) -> Any:
        """Parse a JSON file; None if it does not exist."""
        try:
            text = self.path(name).read_text("utf-8")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeError) as error:
            raise CheckpointError(f"{name}: cannot be read ({error}). Download it again.", param=name) from error
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CheckpointError(f"{name}: not valid JSON ({error}). Download it again.", param=name) from error


def missing(name: str, hint: str) -> CheckpointError:
    """A file that must be there is not."""
    return CheckpointError(
        f"{name}: the file is missing. {hint}; if the download was interrupted, fetch the model again.", param=name
    )


def join(folder: str, name: str) -> str:
    """A file's path inside the repository; `folder` is "" for the root."""
    return f"{folder}/{name}" if folder else name


def check_inside(name: str, field: str, path: str) -> str:
    """Refuse a path that leaves the repository, in POSIX and in Windows spelling; returns it unchanged."""
    windows = PureWindowsPath(path)
    if _HALF_PAIR.search(path):
        raise CheckpointError(f"{name}: {field}: {path!r} is no valid text.", param=f"{name}:{field}")
    if windows.anchor or ".." in windows.parts or "\0" in path:
        raise CheckpointError(
            f"{name}: {field}: {path!r} leaves the repository. Only relative paths without '..' are allowed.",
            param=f"{name}:{field}",
        )
    return path
