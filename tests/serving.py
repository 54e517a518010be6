"""Starts the real command in a process of its own and talks to it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

READY_TIMEOUT_S = 60


def free_port() -> int:
    """A port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A running server process."""

    process: subprocess.Popen[str]
    url: str
    lines: list[str]

    @property
    def output(self) -> str:
        return "".join(self.lines)

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = 60) -> int:
        """Send a signal and wait for the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def wait_until_ready(self) -> None:
        deadline_s = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline_s:
            if self.process.poll() is not None:
                raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.output}")
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                pass
            threading.Event().wait(0.05)
        raise AssertionError(f"the server was not ready in {READY_TIMEOUT_S} s:\n{self.output}")


@contextmanager
def serve(*arguments: str, program: list[str] | None = None, **environment: str) -> Iterator[Server]:
    """Run `infinity_emb v2` with these arguments; killed at the end if it still runs."""
    port = free_port()
    command = [*(program or [sys.executable, "-m", "infinity_emb"]), "v2", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"} | environment,
    )
    server = Server(process, f"http://127.0.0.1:{port}", [])
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: server.lines.extend(process.stdout), daemon=True)  # type: ignore[arg-type]
    reader.start()
    try:
        yield server
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(10)
        reader.join(10)
        process.stdout.close()
