"""How often one key may be used."""

from __future__ import annotations

import math
from collections import deque

from infinity_emb.server.errors import RateLimitedError

WINDOW_S = 60.0


class RateLimit:
    """At most so many requests within any minute; exact, as the times of the last ones are kept.

    Args:
        per_minute: The limit.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._times_s: deque[float] = deque(maxlen=per_minute)

    def take(self, now_s: float) -> None:
        """Count a request or refuse it; a refused one does not count.

        Raises:
            RateLimitedError: The minute is full.
        """
        times_s = self._times_s
        if len(times_s) == self.per_minute:
            wait_s = times_s[0] + WINDOW_S - now_s
            if wait_s > 0:
                raise RateLimitedError(
                    f"This API key may send {self.per_minute} requests a minute; try again later.",
                    retry_after_s=math.ceil(wait_s),
                )
        times_s.append(now_s)
