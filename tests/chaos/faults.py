"""Words that make the faulty backend misbehave, shared by the server under test and by its clients.

Each is one token of the tiny checkpoint.
"""

from __future__ import annotations

from typing import Final

RAISE: Final = "fox"
NAN: Final = "maize"
SLEEP: Final = "lazy"
MEMORY: Final = "potatoes"
BALLOON: Final = "hotter"
HANG: Final = "cotton"
DIE: Final = "omega"
WORDS: Final = (RAISE, NAN, SLEEP, MEMORY, BALLOON, HANG, DIE)

HANG_LIMIT_S: Final = 2.0
HANG_S: Final = 7.0
SLEEP_S: Final = 0.1
# A batch with MEMORY and more texts than this does not "fit".
MEMORY_ITEMS: Final = 6
BALLOON_BYTES: Final = 64 * 1024 * 1024
