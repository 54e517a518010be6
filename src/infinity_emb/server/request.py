"""A request as the handlers see it (hot path: one slotted object, headers looked up on demand)."""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import InvalidInputError
from infinity_emb.measures import StageTimes
from infinity_emb.types import Call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from infinity_emb.server.access_grant import Grant
    from infinity_emb.server.exchange import Exchange

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]

_MAX_ID_CHARS = 128
_ID_START = os.urandom(6).hex()


class _Ids:
    """Request ids: unique over processes by a random start, over requests by a count."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return f"{_ID_START}-{self._count:08x}"


_IDS = _Ids()


class Request:
    """One HTTP request.

    Attributes:
        method: Upper case.
        path: Percent-decoded, without the root path.
        headers: Lower-case names to values, as bytes; of a repeated header the last one.
        receive: ASGI's receive.
        exchange: The connection's side of it; None if another server than ours took the request.
        request_id: The client's `x-request-id`, or a new one.
        dialect: Whose error body to use; a handler that finds a TEI body on a shared path sets it to `tei`.
        params: Path parameters.
        body: The decompressed body, once read.
        grant: What the key of the request may do; None if none was needed.
        native: True when the path is that of Infinity's own API.
        deadline_s: `time.monotonic()` value after which nobody waits, or None.
        times: Where its time goes.
    """

    __slots__ = (
        "_query", "body", "deadline_s", "dialect", "exchange", "grant", "headers", "method", "native", "params", "path",
        "receive", "request_id", "times",
    )  # fmt: skip

    def __init__(self, scope: Scope, receive: Receive, exchange: Exchange | None = None) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        headers = scope["headers"]
        self.headers: dict[bytes, bytes] = headers if exchange is not None else dict(headers)
        self.receive = receive
        self.exchange = exchange
        self.request_id = _given_id(self.headers.get(b"x-request-id")) or _IDS.next()
        self.dialect = ""
        self.grant: Grant | None = None
        self.native = False
        self.params: dict[str, str] = {}
        self.body = b""
        self.deadline_s: float | None = None
        self.times = StageTimes()
        self._query: bytes = scope.get("query_string", b"")

    @property
    def query(self) -> bytes:
        """The raw query string."""
        return self._query

    def header(self, name: bytes) -> str:
        """A header as text; empty if it is absent."""
        return self.headers.get(name, b"").decode("latin-1")

    def start_clock(self, default_timeout_s: float | None) -> None:
        """Set the deadline from `x-request-timeout` (seconds) or the server's default.

        Raises:
            InvalidInputError: The header is no positive number.
        """
        raw = self.headers.get(b"x-request-timeout")
        timeout_s = default_timeout_s
        if raw is not None:
            timeout_s = _positive_seconds(raw)
        if timeout_s is not None:
            self.deadline_s = time.monotonic() + timeout_s

    def call(self) -> Call:
        """Circumstances of this request for the engine."""
        owner = None if self.grant is None else self.grant.digest
        return Call(deadline_s=self.deadline_s, request_id=self.request_id, times=self.times, owner=owner)


def _given_id(raw: bytes | None) -> str:
    """A client's id if it is short and printable ASCII (it goes into a header and into logs), else nothing."""
    if not raw or len(raw) > _MAX_ID_CHARS:
        return ""
    text = raw.decode("latin-1")
    return text if text.isascii() and text.isprintable() else ""


def _positive_seconds(raw: bytes) -> float:
    try:
        value = float(raw)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise InvalidInputError(
            "The header x-request-timeout must be a positive number of seconds.", param="x-request-timeout"
        )
    return value
