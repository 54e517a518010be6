"""Put load on a server: describe it, run the load generator in its own process, read the result."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from measure import Spread, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servers import Server

_CLIENT = Path(__file__).with_name("client.py")


@dataclass(frozen=True)
class Work:
    """Requests to send.

    Attributes:
        bodies: JSON bodies, sent in turn.
        connections: At once (closed loop), or None with a rate.
        rate: Requests per second (open loop), or None.
        path: Where to.
    """

    bodies: Sequence[str]
    connections: int = 1
    rate: float | None = None
    path: str = "/embeddings"


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    Attributes:
        requests_per_s: Answered with 200, inside the window.
        latencies_ms: min, p50, p90, p99, max.
        answered: Requests behind the latencies.
        sent: All requests, those outside the window too.
        client_cpu_share: Share of one core that the load generator used.
        server_cpu_ms: Processor time that the server spent on one request; 0 where the system does not tell.
    """

    requests_per_s: float
    latencies_ms: dict[str, float]
    answered: int
    sent: int
    client_cpu_share: float
    server_cpu_ms: float


class Running:
    """A load generator at work."""

    def __init__(self, server: Server, work: Work, duration_s: float, warm_s: float) -> None:
        job = {
            "host": server.host,
            "port": server.port,
            "path": work.path,
            "bodies": list(work.bodies),
            "connections": work.connections,
            "rate": work.rate,
            "duration_s": duration_s,
            "warm_s": warm_s,
        }
        self._server = server
        self._cpu_before_s = server.cpu_s()
        command = [sys.executable, "-S", str(_CLIENT)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode())
        self._process.stdin.close()

    def result(self) -> Outcome:
        """Wait for the end.

        Raises:
            RuntimeError: The load generator failed, or a request did.
        """
        assert self._process.stdout is not None
        written = self._process.stdout.read()
        name = self._server.name
        if self._process.wait() != 0:
            raise RuntimeError(
                f"the load on {name} failed, its message is above; the server's last line: {self._server.said()}"
            )
        values = json.loads(written)
        statuses, errors = values.pop("statuses"), values.pop("errors")
        if errors:
            raise RuntimeError(
                f"{errors} of {values['sent']} requests to {name} got no 200; "
                f"answers by status (0 is a closed connection): {statuses}"
            )
        used_s = self._server.cpu_s() - self._cpu_before_s
        return Outcome(**values, server_cpu_ms=1e3 * used_s / values["sent"])


def load(server: Server, work: Work, duration_s: float, warm_s: float = 1.0) -> Outcome:
    """Load a server for a while."""
    return Running(server, work, duration_s, warm_s).result()


COLUMNS = ("server", "requests/s", "p50 ms", "p99 ms", "processor ms a request", "load generator's share of a core")


def row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """What `COLUMNS` name, over several rounds."""
    shown = [Spread.of([one.requests_per_s for one in outcomes])]
    shown += [Spread.of([one.latencies_ms[share] for one in outcomes]) for share in ("p50", "p99")]
    shown.append(Spread.of([one.server_cpu_ms for one in outcomes]))
    return (name, *map(str, shown), number(max(one.client_cpu_share for one in outcomes)))


def bodies(texts: Sequence[str], inputs: int, **fields: object) -> list[str]:
    """Bodies of `/embeddings` with so many inputs each, in order; the last incomplete one is left out."""
    groups = [list(texts[start : start + inputs]) for start in range(0, len(texts) - inputs + 1, inputs)]
    return [json.dumps({"model": "bench", "input": group, **fields}) for group in groups]
