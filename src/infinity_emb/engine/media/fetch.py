"""Fetches one file: look up, check, connect to the checked address, read, and again for every redirect."""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from infinity_emb.engine.media import transport
from infinity_emb.engine.media.addresses import refusal_of
from infinity_emb.engine.media.answer import REDIRECTS, read_answer
from infinity_emb.engine.media.data_uri import is_data_uri, read_data_uri
from infinity_emb.engine.media.location import follow, parse
from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal
from infinity_emb.types import MediaUrls

if TYPE_CHECKING:
    import socket

    from infinity_emb.engine.media.addresses import Address
    from infinity_emb.engine.media.location import Location
    from infinity_emb.engine.media.media import Media
    from infinity_emb.engine.media.policy import MediaPolicy
    from infinity_emb.engine.media.transport import Connect, Deadline, Resolve

MAX_ADDRESSES = 4  # of one host that are tried


@dataclass(frozen=True, slots=True)
class Network:
    """The way out; tests put their own in.

    Attributes:
        resolve: Host → addresses.
        connect: Address → connection. It gets only addresses that were checked.
        tls: Trusted certificates.
    """

    resolve: Resolve = transport.resolve
    connect: Connect = transport.connect
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)


def fetch(url: str, kind: str, policy: MediaPolicy, network: Network) -> Media:
    """The file behind a URL or in a data URI; blocks.

    Args:
        url: http, https or data.
        kind: `image` or `audio`.
        policy: What is allowed.
        network: The way out.

    Raises:
        MediaRefusedError: A rule is broken; `refusal` says which.
    """
    if is_data_uri(url):
        return read_data_uri(url, kind, policy.max_bytes)
    if policy.urls is MediaUrls.NONE:
        raise MediaRefusedError(
            Refusal.OFF, "This server fetches no URLs (--media-urls none); send the content as a data: URI."
        )
    location = parse(url)
    left_s = transport.deadline_in(policy.timeout_s)
    try:
        return _follow(location, kind, policy, network, left_s)
    except TimeoutError as error:
        raise MediaRefusedError(
            Refusal.TOO_SLOW, f"The file did not arrive within {policy.timeout_s:g} s (--media-timeout-s)."
        ) from error
    except http.client.HTTPException as error:
        raise MediaRefusedError(Refusal.BROKEN_ANSWER, "The host's answer is not valid HTTP.") from error
    except OSError as error:
        raise MediaRefusedError(Refusal.UNREACHABLE, "The connection to the host broke.") from error


def _follow(location: Location, kind: str, policy: MediaPolicy, network: Network, left_s: Deadline) -> Media:
    for _ in range(policy.max_redirects + 1):
        with _open(location, policy, network, left_s) as connection:
            answer = _ask(connection, location, left_s)
            if answer.status not in REDIRECTS:
                return read_answer(answer, kind, policy.max_bytes)
            target = answer.getheader("location")
            if not target:
                raise MediaRefusedError(Refusal.REDIRECT_TARGET, "The host redirects without saying where to.")
            location = follow(location, target)
    raise MediaRefusedError(
        Refusal.REDIRECTS, f"The host redirects more than {policy.max_redirects} times; send the last URL itself."
    )


def _open(location: Location, policy: MediaPolicy, network: Network, left_s: Deadline) -> socket.socket:
    """Connect to an address that passed the check; the name is not looked up again."""
    problem: OSError | None = None
    for address in _checked_addresses(location, policy, network)[:MAX_ADDRESSES]:
        try:
            plain = network.connect(address, location.port, left_s())
        except OSError as error:
            problem = error
            continue
        if not location.secure:
            return plain
        try:
            return transport.secure(plain, location.host, network.tls, left_s)
        except BaseException:
            plain.close()
            raise
    if isinstance(problem, TimeoutError):
        raise problem
    raise MediaRefusedError(Refusal.UNREACHABLE, f"{location.host[:80]!r} cannot be reached.") from problem


def _checked_addresses(location: Location, policy: MediaPolicy, network: Network) -> list[Address]:
    if not policy.lists(location.host):
        raise MediaRefusedError(
            Refusal.HOST_NOT_LISTED, f"{location.host[:80]!r} is not among the hosts this server fetches from."
        )
    if location.address is not None:
        addresses = [location.address]
    else:
        try:
            addresses = list(network.resolve(location.host, location.port))
        except (OSError, UnicodeError) as error:
            raise MediaRefusedError(Refusal.UNRESOLVED, f"The host {location.host[:80]!r} is not known.") from error
    if not addresses:
        raise MediaRefusedError(Refusal.UNRESOLVED, f"The host {location.host[:80]!r} has no address.")
    if policy.urls is MediaUrls.PUBLIC:
        # One bad address is enough: a host that mixes them does so on purpose.
        for address in addresses:
            refusal = refusal_of(address)
            if refusal is not None:
                kind = refusal.value.replace("_", " ")
                raise MediaRefusedError(
                    refusal,
                    f"{location.host[:80]!r} is no public host ({kind} address), and only public ones are fetched "
                    "from. An operator can allow others with --media-urls any.",
                )
    return addresses


def _ask(connection: socket.socket, location: Location, left_s: Deadline) -> http.client.HTTPResponse:
    stream = transport.BoundedStream(connection, left_s)
    lines = (
        f"GET {location.target} HTTP/1.1",
        f"Host: {location.authority}",
        "User-Agent: infinity_emb",
        "Accept: */*",
        "Accept-Encoding: identity",
        "Connection: close",
    )
    stream.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("ascii"))
    answer = http.client.HTTPResponse(stream, method="GET")  # type: ignore[arg-type]  # it only calls makefile
    answer.begin()
    return answer
