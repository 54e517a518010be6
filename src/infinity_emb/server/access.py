"""Who may call: API keys, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import TYPE_CHECKING

from infinity_emb.errors import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from infinity_emb.server.request import Request

_KEY_HEADERS = (b"x-api-key", b"api-key")


class Access:
    """The keys of which a request must show one; without keys everybody may call, whatever headers are sent.

    Args:
        keys: As clients send them, or `sha256:` and the hexadecimal digest, so that no key lies in a file or variable.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = tuple(_known_digest(key) for key in keys if key)

    def check(self, request: Request) -> None:
        """Let the request pass or raise.

        Raises:
            AuthenticationError: Keys are set and the request shows none of them.
        """
        if not self._digests:
            return
        given = _given_keys(request)
        # Every key is compared with every given one, so the time says nothing about which of them is near.
        matches = [hmac.compare_digest(_digest(key), known) for key in given for known in self._digests]
        if any(matches):
            return
        raise AuthenticationError(
            "Missing or wrong API key. Send it as 'Authorization: Bearer <key>' or in the header x-api-key or api-key."
        )


def _known_digest(key: str) -> bytes:
    match = re.fullmatch(r"sha256:([0-9a-fA-F]{64})", key)
    return _digest(key.encode()) if match is None else bytes.fromhex(match.group(1))


def _digest(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()


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
