"""A URL taken apart, once and strictly: what is checked here is what is asked for later."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urljoin, urlsplit

from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal

if TYPE_CHECKING:
    from infinity_emb.engine.media.addresses import Address

MAX_URL_CHARS = 8192
_SAFE = "/%:@!$&'()*+,;=~-._?"  # stay as they are in a path or query
_PORTS = {"http": 80, "https": 443}
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_HOST = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
# Systems read a name whose last part is a number as an address, each in its own way: octal, hexadecimal, short forms.
_NUMBER = re.compile(r"(0x[0-9a-f]*|[0-9]+)")
# Written out in a URL these have no meaning but that two parsers disagree about it.
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")


@dataclass(frozen=True, slots=True)
class Location:
    """Where a file is.

    Attributes:
        secure: https rather than http.
        host: Lower case, without brackets or a final dot.
        port: TCP port.
        target: Path and query as they stand in the request line, percent-encoded.
        address: The host, if it is written as an address.
    """

    secure: bool
    host: str
    port: int
    target: str
    address: Address | None

    @property
    def authority(self) -> str:
        """Value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS["https" if self.secure else "http"] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The whole, for resolving redirects."""
        return f"{'https' if self.secure else 'http'}://{self.authority}{self.target}"


def parse(url: str) -> Location:
    """Take a URL apart.

    Raises:
        MediaRefusedError: It is not http or https, holds credentials, or is written in a way that parsers disagree on.
    """
    if len(url) > MAX_URL_CHARS:
        raise _malformed(f"it has {len(url)} characters, at most {MAX_URL_CHARS} are allowed")
    if _UNSAFE.search(url):
        raise _malformed("it holds a space, a backslash or a control character; percent-encode them")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _malformed(str(error)) from error
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise MediaRefusedError(
            Refusal.SCHEME,
            f"The scheme {scheme[:20]!r} cannot be fetched; send an http:// or https:// URL or a data: URI.",
        )
    if "@" in parts.netloc:
        raise MediaRefusedError(Refusal.CREDENTIALS, "A URL with a user name or password is not fetched; leave it out.")
    if port == 0:
        raise _malformed("port 0 does not exist")
    host, address = _host(parts.hostname or "", bracketed=parts.netloc.startswith("["))
    target = parts.path or "/"
    if parts.query:
        target += f"?{parts.query}"
    return Location(scheme == "https", host, port or _PORTS[scheme], quote(target, safe=_SAFE), address)


def follow(location: Location, target: str) -> Location:
    """Where a redirect leads; it is checked like a first URL.

    Raises:
        MediaRefusedError: As `parse`.
    """
    try:
        joined = urljoin(location.url, target)
    except ValueError as error:
        raise _malformed(str(error)) from error
    return parse(joined)


def _host(text: str, *, bracketed: bool) -> tuple[str, Address | None]:
    if bracketed:
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError as error:
            raise _malformed(f"[{text[:80]}] is no IPv6 address") from error
        if address.scope_id is not None:
            raise _malformed("an address with a zone is not public")
        return str(address), address
    host = text.lower().removesuffix(".")
    if not host.isascii():
        raise _malformed("the host is not ASCII; write it in its xn-- form")
    if not _HOST.fullmatch(host):
        raise _malformed("it names no valid host")
    if not _NUMBER.fullmatch(host.rpartition(".")[2]):
        return host, None
    try:
        return host, ipaddress.IPv4Address(host)
    except ValueError as error:
        raise MediaRefusedError(
            Refusal.NUMBER_AS_HOST,
            f"{host[:80]!r} is a number, not a host. Write an IPv4 address as four decimal parts, such as 192.0.2.1.",
        ) from error


def _malformed(reason: str) -> MediaRefusedError:
    return MediaRefusedError(Refusal.MALFORMED, f"The URL cannot be used: {reason}.")
