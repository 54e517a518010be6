"""A connection to one checked address with one deadline for everything on it."""

from __future__ import annotations

import io
import ipaddress
import socket
import ssl
import time
from typing import TYPE_CHECKING, Protocol

from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from _typeshed import WriteableBuffer

    from infinity_emb.engine.media.addresses import Address

    Resolve = Callable[[str, int], Sequence[Address]]
    Connect = Callable[[Address, int, float], socket.socket]


class Deadline(Protocol):
    """Seconds that are left."""

    def __call__(self) -> float:
        """Above zero; raises TimeoutError when the time is over."""


def deadline_in(timeout_s: float) -> Deadline:
    """A deadline that many seconds from now."""
    end_s = time.monotonic() + timeout_s

    def left_s() -> float:
        left = end_s - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time for this file is over")
        return left

    return left_s


def resolve(host: str, port: int) -> list[Address]:
    """Addresses of a host, asked of the system.

    Raises:
        OSError: There are none.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


def connect(address: Address, port: int, timeout_s: float) -> socket.socket:
    """A TCP connection to exactly this address: no name is looked up here.

    Raises:
        OSError: It cannot be reached.
    """
    return socket.create_connection((str(address), port), timeout_s)


def secure(plain: socket.socket, host: str, context: ssl.SSLContext, left_s: Deadline) -> socket.socket:
    """TLS over a connection, with the host's name in SNI and checked against the certificate.

    Raises:
        MediaRefusedError: The handshake fails.
    """
    plain.settimeout(left_s())
    try:
        return context.wrap_socket(plain, server_hostname=host)
    except (ssl.SSLError, ssl.CertificateError) as error:
        raise MediaRefusedError(Refusal.TLS, f"No secure connection to {host[:80]!r}: {_reason(error)}.") from error


class BoundedStream:
    """What `http.client.HTTPResponse` reads from; each read may take what is left of the time, not a time of its own.

    Args:
        connection: Connected.
        left_s: The deadline.
    """

    def __init__(self, connection: socket.socket, left_s: Deadline) -> None:
        self._connection = connection
        self._left_s = left_s

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        self._connection.settimeout(self._left_s())
        self._connection.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The reading end."""
        return io.BufferedReader(_Reader(self._connection, self._left_s))


class _Reader(io.RawIOBase):
    def __init__(self, connection: socket.socket, left_s: Deadline) -> None:
        self._connection = connection
        self._left_s = left_s

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        self._connection.settimeout(self._left_s())
        return self._connection.recv_into(buffer)


def _reason(error: ssl.SSLError | ssl.CertificateError) -> str:
    return str(getattr(error, "verify_message", "") or getattr(error, "reason", "") or "handshake failed")
