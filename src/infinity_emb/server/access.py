"""Who may call: API keys, compared in constant time, each with what it may do."""

from __future__ import annotations

import hmac
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

from infinity_emb.errors import AuthenticationError
from infinity_emb.server.access_grant import Grant, digest_of
from infinity_emb.server.access_rate import RateLimit
from infinity_emb.server.errors import ForbiddenError, RouteNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infinity_emb.server.access_file import KeyFile
    from infinity_emb.server.request import Request

_KEY_HEADERS = (b"x-api-key", b"api-key")
# The grant of the request that the current task answers; handlers choose models deep inside.
_CURRENT: ContextVar[Grant | None] = ContextVar("grant", default=None)


class Access:
    """The keys of which a request must show one; without keys everybody may call, whatever headers are sent.

    Args:
        keys: As clients send them, or `sha256:` and the hexadecimal digest, so that no key lies in a file or variable.
        operator_keys: The same for operators; they open everything, `/debug` too.
        file: Further keys, read again when it changes. With a file there is no access without a key, even if it is
            empty.
    """

    def __init__(self, keys: Iterable[str], operator_keys: Iterable[str] = (), file: KeyFile | None = None) -> None:
        self._clients = tuple(Grant(digest_of(key)) for key in keys if key)
        self._operators = tuple(Grant(digest_of(key), "operator", operator=True) for key in operator_keys if key)
        self._file = file
        self._rates: dict[bytes, RateLimit] = {}

    def check(self, request: Request) -> Grant | None:
        """Let the request pass or raise; returns the grant of its key, None where nobody needs one.

        Raises:
            AuthenticationError: Keys are set and the request shows none of them.
            RateLimitedError: The key was used too often within the last minute.
        """
        if not self._clients and self._file is None:
            return None
        grant = _shown(request, self._grants())
        if grant is None:
            raise AuthenticationError(
                "Missing or wrong API key. Send it as 'Authorization: Bearer <key>' or in the header x-api-key or "
                "api-key."
            )
        if grant.per_minute is not None:
            self._rate(grant.digest, grant.per_minute).take(time.monotonic())
        return grant

    def check_operator(self, request: Request) -> Grant:
        """Let an operator pass or raise.

        Raises:
            RouteNotFoundError: No key of an operator is set.
            AuthenticationError: The request shows none of them.
        """
        grants = [grant for grant in self._grants() if grant.operator]
        if not grants:
            raise RouteNotFoundError("This page is for operators and off: no --operator-key is set.")
        grant = _shown(request, grants)
        if grant is None:
            raise AuthenticationError("This page needs an operator's key.")
        return grant

    def _grants(self) -> tuple[Grant, ...]:
        return self._clients + self._operators + (() if self._file is None else self._file.grants())

    def _rate(self, digest: bytes, per_minute: int) -> RateLimit:
        rate = self._rates.get(digest)
        if rate is None or rate.per_minute != per_minute:
            rate = self._rates[digest] = RateLimit(per_minute)
        return rate


def enter(grant: Grant | None) -> None:
    """The current task answers a request with this grant."""
    _CURRENT.set(grant)


def check_model(served_name: str) -> None:
    """Raise unless the current request may use a model.

    Raises:
        ForbiddenError: Its key is for other models.
    """
    grant = _CURRENT.get()
    if grant is None or grant.models is None or served_name in grant.models:
        return
    allowed = ", ".join(sorted(grant.models)) or "none"
    raise ForbiddenError(f"This API key may not use the model {served_name!r}; it may use: {allowed}.", param="model")


def _shown(request: Request, grants: Iterable[Grant]) -> Grant | None:
    # Every key is compared with every given one, so the time says nothing about which of them is near.
    given = [digest_of(key.decode("latin-1"), plain=True) for key in _given_keys(request)]
    matches = [grant for grant in grants for digest in given if hmac.compare_digest(digest, grant.digest)]
    return matches[0] if matches else None


def _given_keys(request: Request) -> list[bytes]:
    given = [request.headers[name] for name in _KEY_HEADERS if request.headers.get(name)]
    authorization = request.headers.get(b"authorization", b"").strip()
    if authorization:
        given.append(authorization)  # some clients send the bare key
        scheme, _, rest = authorization.partition(b" ")
        if scheme.lower() == b"bearer":
            rest = rest.strip()
            given.append(rest)
            if rest[:7].lower() == b"bearer ":  # others say Bearer twice
                given.append(rest[7:].strip())
    return given
