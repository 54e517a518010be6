"""From the bytes of a connection to its requests; httptools (llhttp) judges what is HTTP (hot path)."""

from __future__ import annotations

import functools
import urllib.parse
from typing import TYPE_CHECKING

import httptools

from infinity_emb.server.exchange import Exchange

if TYPE_CHECKING:
    from infinity_emb.server.connection import Connection

_TARGETS_KEPT = 256


class RequestReader:
    """The parser's callbacks; one object a connection.

    Args:
        connection: Gets every exchange whose head is complete.

    Attributes:
        current: The exchange whose head was read last; pieces of a body are its.
        stalled_bytes: What came in since a head, or a piece of a body, was last complete.
        leftover_bytes: What came in of a body after its request had been answered.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parser = httptools.HttpRequestParser(self)
        # Requests sent after one that asks to close are dropped with the connection, and are no error before that.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._in_head = False
        self.current: Exchange | None = None
        self.stalled_bytes = 0
        self.leftover_bytes = 0

    def feed(self, data: bytes) -> None:
        """Read on.

        Raises:
            httptools.HttpParserError: This is no HTTP, or could be read in two ways.
        """
        self.stalled_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:  # no other protocol is spoken here: the wish is passed over
            rest = data[upgrade.args[0] :]
            self.stalled_bytes -= len(rest)
            if rest:
                self.feed(rest)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url = b""
        self._headers = {}
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """A piece of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; what stands behind the body (a trailer) is not looked at."""
        if self._in_head:
            self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._in_head = False
        self.stalled_bytes = self.leftover_bytes = 0
        parser, headers = self._parser, self._headers
        path, query = _target(self._url)
        scope = {
            "method": parser.get_method().decode("ascii"),
            "path": path,
            "query_string": query,
            "headers": headers,
        }
        self.current = Exchange(
            self._connection,
            scope,
            keep_alive=parser.should_keep_alive() and parser.get_http_version() != "1.0",
            expects_continue=b"expect" in headers and headers[b"expect"].lower() == b"100-continue",
        )
        self._connection.begin(self.current)

    def on_body(self, piece: bytes) -> None:
        """A piece of the body."""
        self.stalled_bytes = 0
        if self.current is not None and not self.current.over:
            self.current.add(piece)
        else:
            self.leftover_bytes += len(piece)

    def on_message_complete(self) -> None:
        """The body is complete."""
        self.stalled_bytes = 0
        if self.current is not None:
            self.current.finish()


@functools.lru_cache(_TARGETS_KEPT)
def _target(url: bytes) -> tuple[str, bytes]:
    """Percent-decoded path, raw query."""
    parsed = httptools.parse_url(url)
    path = parsed.path.decode("ascii")
    return urllib.parse.unquote(path) if "%" in path else path, parsed.query or b""
