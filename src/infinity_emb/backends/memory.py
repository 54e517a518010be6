"""How much memory this process holds and may still take, as Linux tells it; other systems do not say."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

GIB_BYTES = 2**30
_ROOT = Path("/")


class Memory(NamedTuple):
    """A moment's state.

    Attributes:
        resident_bytes: What this process holds.
        available_bytes: What it may still take before the kernel ends something.
    """

    resident_bytes: int
    available_bytes: int


class _Controller(NamedTuple):
    """Where one version of control groups keeps its numbers."""

    folder: str
    limit: str
    usage: str
    cache: str


_VERSION_1 = _Controller(
    "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
)
_VERSION_2 = _Controller("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file")


def read_memory(root: Path = _ROOT) -> Memory | None:
    """The state now; None where the system does not tell.

    Args:
        root: Where `proc` and `sys` lie.
    """
    try:
        machine = _table(root / "proc/meminfo")["MemAvailable"] * 1024
        resident = _table(root / "proc/self/status")["VmRSS"] * 1024
        groups = (root / "proc/self/cgroup").read_text("utf-8").splitlines()
    except (OSError, KeyError, ValueError):
        return None
    limits = [left for line in groups for left in _left_in_group(root, line)]
    return Memory(resident, max(0, min([machine, *limits])))


def _left_in_group(root: Path, line: str) -> list[int]:
    """What the group of a line of `/proc/self/cgroup` and those above it still allow; empty if it limits no memory.

    In a container the path may be that of the host, of which only the end of the tree is there.
    """
    _, controllers, path = line.split(":", 2)
    if controllers and "memory" not in controllers.split(","):
        return []
    kind = _VERSION_1 if controllers else _VERSION_2
    top = root / kind.folder
    folder = top / path.lstrip("/")
    folders = [folder, *(above for above in folder.parents if above.is_relative_to(top))]
    return [left for one in folders if (left := _left(one, kind)) is not None]


def _left(folder: Path, kind: _Controller) -> int | None:
    try:
        limit = (folder / kind.limit).read_text("ascii").strip()
        if limit == "max":
            return None
        cache = _table(folder / "memory.stat").get(kind.cache, 0)  # the kernel drops it before it ends anything
        return int(limit) - int((folder / kind.usage).read_text("ascii")) + cache
    except (OSError, ValueError):
        return None


def _table(path: Path) -> dict[str, int]:
    """Lines of a name and a number, with or without a colon and a unit."""
    rows = (line.replace(":", " ").split() for line in path.read_text("utf-8").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}
