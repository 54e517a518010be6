"""What a process holds: memory, threads, file descriptors."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

SETTLE_S = 15.0


class Held(NamedTuple):
    """Resident memory in bytes, threads, open files."""

    resident_bytes: int
    threads: int
    files: int

    def __str__(self) -> str:
        return f"{self.resident_bytes / 2**20:.1f} MiB resident, {self.threads} threads, {self.files} files"


def held_by(pid: int) -> Held:
    """As Linux tells it."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return Held(int(status["VmRSS"].split()[0]) * 1024, int(status["Threads"]), files)


def settled(pid: int, ceiling: Held | None = None) -> Held:
    """The least that is held while a process comes to rest; ends early once it is below the ceiling."""
    deadline_s = time.monotonic() + SETTLE_S
    least = held_by(pid)
    while time.monotonic() < deadline_s:
        now = held_by(pid)
        least = Held(*map(min, least, now))
        if ceiling is not None and all(have <= allowed for have, allowed in zip(least, ceiling, strict=True)):
            break
        time.sleep(0.25)
    return least
