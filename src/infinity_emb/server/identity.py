"""Names of answers and requests: random for the process, counted within it, so that none costs a system call."""

from __future__ import annotations

import itertools
import uuid

_START = str(uuid.uuid4())[:-12]
_COUNT = itertools.count(1)


def new_id() -> str:
    """A new UUID (version 4 in form); the random part is that of the process."""
    return f"{_START}{next(_COUNT):012x}"
