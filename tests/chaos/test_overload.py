"""Ten times more than the server can do: what it accepts it finishes, the rest it refuses at once, memory stays bounded.

Times are asserted only in the long run (`make soak`), on a machine that does nothing else.
"""

from __future__ import annotations

import asyncio
import sys

import httpx
from overload import CAPACITY_PER_S, load, percentile
from work import LONG_S

MEMORY_BYTES = 200 * 1024 * 1024


def answered_within_50_ms(url: str) -> float:
    """As the server counts it; the client that makes such a load is too busy itself. Accepted requests take longer."""
    lines = httpx.get(f"{url}/metrics", timeout=30).text.splitlines()
    name = 'http_request_duration_highr_seconds_bucket{le="0.05"}'
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def test_ten_times_the_capacity(serve_faulty, chaos_s):
    duration_s = min(60.0, chaos_s / 5)
    with serve_faulty("--queue-size", "96", "--log-level", "critical") as server:
        server.wait_until_ready()
        pid = server.process.pid
        usual = asyncio.run(load(server.url, pid, CAPACITY_PER_S, duration_s))
        quick = answered_within_50_ms(server.url)
        over = asyncio.run(load(server.url, pid, 10 * CAPACITY_PER_S, duration_s))
        quick = answered_within_50_ms(server.url) - quick
        after = asyncio.run(load(server.url, pid, CAPACITY_PER_S / 4, 1.0))
        for name, found in [("capacity", usual), ("ten times", over), ("afterwards", after)]:
            sys.stdout.write(found.report(name) + "\n")
        sys.stdout.write(f"answered within 50 ms at ten times: {quick:.0f}\n")
    assert set(over.statuses) == {200, 429}
    assert over.statuses[429] > over.statuses[200] > 0
    assert all(value.isdigit() and 1 <= int(value) <= 60 for value in over.retry_after)
    assert over.most_bytes - usual.most_bytes < MEMORY_BYTES
    assert set(after.statuses) == {200}
    if chaos_s >= LONG_S:
        assert quick > 0.99 * over.statuses[429]
        assert percentile(over.accepted_s) < 1.5 * percentile(usual.accepted_s)
