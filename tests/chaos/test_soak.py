"""Steady work for a long time: no error, and memory that stays where it was after the first minute."""

from __future__ import annotations

import asyncio
import sys

from numbers_held import held_by
from work import CLIENTS, LONG_S, work

# A short run's first part has not met every shape of batch, each of which the library keeps something for; a leak
# passes this within minutes.
SHORT_RUN_SLACK_BYTES = 8 * 1024 * 1024


def test_memory_stays_where_it_was(serve_faulty, chaos_s):
    with serve_faulty("--log-level", "critical") as server:
        server.wait_until_ready()
        first_s = min(60.0, chaos_s / 3)
        asyncio.run(work(server.url, first_s, seed=1))
        before = held_by(server.process.pid)
        rest_s = chaos_s / 3 if chaos_s < LONG_S else chaos_s
        answered, statuses = asyncio.run(work(server.url, rest_s, seed=2))
        after = held_by(server.process.pid)
        grown = after.resident_bytes / before.resident_bytes - 1
        sys.stdout.write(
            f"{answered} answers in {rest_s:.0f} s, statuses {sorted(statuses)}\n"
            f"after {first_s:4.0f} s: {before}\nat the end:   {after}\nmemory {grown:+.2%}\n"
        )
        assert statuses == {200}
        assert answered > CLIENTS
        assert after.resident_bytes < before.resident_bytes * 1.02 + (SHORT_RUN_SLACK_BYTES if chaos_s < LONG_S else 0)
        assert after.files <= before.files + CLIENTS  # open connections may differ
        assert server.stop() == 0
