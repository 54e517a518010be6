"""Start and stop the servers that are compared, and read their memory."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_START_TIMEOUT_S = 120.0
_POLL_S = 0.01
_QUIET = {"DO_NOT_TRACK": "1", "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "TOKENIZERS_PARALLELISM": "true"}


class Server:
    """A server in its own process.

    Attributes:
        name: For tables.
        port: Where it listens.
        ready_s: From start of the process to the first 200 of `/health`.
    """

    host = "127.0.0.1"

    def __init__(self, name: str, command: Sequence[str]) -> None:
        self.name = name
        self.port = _free_port()
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - lives as long as the process
        started_s = time.perf_counter()
        self._process = subprocess.Popen(
            [*command, "--port", str(self.port)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            env={**os.environ, **_QUIET},
        )
        self._wait(started_s + _START_TIMEOUT_S)
        self.ready_s = time.perf_counter() - started_s

    def resident_bytes(self) -> int:
        """Memory of the process and its children that is in RAM now."""
        return sum(_resident_bytes(pid) for pid in _family(self._process.pid))

    def cpu_s(self) -> float:
        """Processor time that the process and its children have used; 0 where /proc does not tell."""
        return sum(_cpu_s(pid) for pid in _family(self._process.pid))

    def stop(self) -> None:
        """Ask it to end, then make it."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _wait(self, deadline_s: float) -> None:
        url = f"http://{self.host}:{self.port}/health"
        while time.perf_counter() < deadline_s:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended while it started: {self.said()}")
            try:
                with urllib.request.urlopen(url, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(_POLL_S)
        self.stop()
        raise RuntimeError(f"{self.name} was not ready after {_START_TIMEOUT_S:g} s")

    def said(self) -> str:
        """The last line it printed."""
        self._log.seek(0)
        lines = [line.strip() for line in self._log.read().splitlines() if line.strip()]
        return lines[-1][:300] if lines else "it said nothing"


@contextlib.contextmanager
def serving(name: str, command: Sequence[str]) -> Iterator[Server]:
    """A server for the length of a block."""
    server = Server(name, command)
    try:
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _family(pid: int) -> list[int]:
    """A process and its descendants; only itself where /proc does not tell."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    if not children.exists():
        return [pid]
    return [pid, *(one for child in children.read_text().split() for one in _family(int(child)))]


def _cpu_s(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident_bytes(pid: int) -> int:
    written = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return int(written.strip() or 0) * 1024
