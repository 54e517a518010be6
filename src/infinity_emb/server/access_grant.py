"""One API key and what it may do; keys are kept as digests only."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from infinity_emb.errors import ConfigurationError

_DIGEST = re.compile(r"sha256:([0-9a-fA-F]{64})")
_FORM = "<key> [name=…] [per-minute=…] [models=…,…] [operator]"


@dataclass(frozen=True, slots=True)
class Grant:
    """What the holder of a key may do.

    Attributes:
        digest: SHA-256 of the key.
        name: For logs; empty if it has none.
        per_minute: Most requests within any minute; None is no limit.
        models: Served names it may use; None is all of them.
        operator: May look at `/debug`.
    """

    digest: bytes
    name: str = ""
    per_minute: int | None = None
    models: frozenset[str] | None = None
    operator: bool = False


def digest_of(key: str, *, plain: bool = False) -> bytes:
    """SHA-256 of a key; a key that is already written as `sha256:…` gives that digest unless it is taken `plain`."""
    match = None if plain else _DIGEST.fullmatch(key)
    if match is not None:
        return bytes.fromhex(match.group(1))
    # headers hold bytes: what is no UTF-8 was read as latin-1 and goes back the same way
    return hashlib.sha256(key.encode("latin-1") if plain else key.encode()).digest()


def read_grants(text: str) -> tuple[Grant, ...]:
    """Grants of a key file: one a line, `#` begins a comment.

    Raises:
        ConfigurationError: A line has another form, or a key stands twice; the message names the line, never the key.
    """
    grants: dict[bytes, Grant] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        grant = _read(words, number)
        if grant.digest in grants:
            raise _wrong(number, "it holds a key that stands further up already")
        grants[grant.digest] = grant
    return tuple(grants.values())


def _read(words: list[str], number: int) -> Grant:
    name, per_minute, models, operator = "", None, None, False
    for word in words[1:]:
        field, _, value = word.partition("=")
        if field == "name" and value:
            name = value
        elif field == "per-minute" and value.isdecimal() and int(value) > 0:
            per_minute = int(value)
        elif field == "models" and value:
            models = frozenset(filter(None, value.split(",")))
        elif word == "operator":
            operator = True
        else:
            raise _wrong(number, f"{field[:40]!r} is not known or has a wrong value")
    return Grant(digest_of(words[0]), name, per_minute, models, operator)


def _wrong(number: int, reason: str) -> ConfigurationError:
    return ConfigurationError(f"Line {number} of the key file: {reason}. Its form is {_FORM}.", param="api-key-file")
