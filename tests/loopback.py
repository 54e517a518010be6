"""A small HTTP server on loopback that notes every request, for tests to build on."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class SeenRequest:
    """One request as it came in; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]


class Exchange(BaseHTTPRequestHandler):
    """One request and its answer."""

    protocol_version = "HTTP/1.1"
    server: LoopbackServer

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.seen = SeenRequest(self.command, self.path, headers)
        with self.server.lock:
            self.server.requests.append(self.seen)
        try:
            self.server.answer(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client went away, as some tests want

    def send(
        self, status: int, body: bytes = b"", headers: dict[str, str] | None = None, *, cut_after: int | None = None
    ):
        """Send an answer; with `cut_after` announce all of it, send so many bytes and hang up."""
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body if cut_after is None else body[:cut_after])
        if cut_after is not None:
            self.close_connection = True

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base class names it so
        """Keep the test's output clean."""


class LoopbackServer(ThreadingHTTPServer):
    """A context manager: serves while it is open, on a free port of 127.0.0.1."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Callable[[Exchange], None]) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.answer = answer
        self.requests: list[SeenRequest] = []
        self.lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
