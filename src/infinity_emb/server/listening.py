"""Bind the addresses before anything is loaded, so that a port in use is found at once."""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import ConfigurationError

if TYPE_CHECKING:
    from infinity_emb.config.server_args import ServerArgs

_BACKLOG = 2048


class Bound(NamedTuple):
    """A listening socket and what answers there.

    Attributes:
        socket: Bound and listening.
        model_index: Position of the only model that answers there; None is all of them.
        path: Of a unix socket.
    """

    socket: socket.socket
    model_index: int | None
    path: str | None = None

    def release(self) -> None:
        """Leave nothing behind once the socket is closed."""
        if self.path is not None:
            Path(self.path).unlink(missing_ok=True)


def bind(server_args: ServerArgs, model_count: int) -> list[Bound]:
    """Open every address of the server.

    Raises:
        ConfigurationError: An address is in use, not this machine's, or not allowed.
    """
    bound: list[Bound] = []
    try:
        if server_args.uds:
            return [Bound(_bind_unix(server_args.uds), None, server_args.uds)]
        for listener in server_args.listeners(model_count):
            opened = _bind_port(server_args.host, listener.port)
            bound.append(Bound(opened, listener.model_index))
    except ConfigurationError:
        for entry in bound:
            entry.socket.close()
        raise
    return bound


def _bind_port(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise ConfigurationError(f"--host {host!r} cannot be resolved: {error}.", param="host") from error
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise ConfigurationError(_why(error, host, port), param="port") from error
    opened.setblocking(False)
    return opened


def _bind_unix(path: str) -> socket.socket:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if _is_stale(path):
            Path(path).unlink()
        opened.bind(path)
        opened.listen(_BACKLOG)
    except OSError as error:
        opened.close()
        raise ConfigurationError(f"--uds {path!r} cannot be bound: {error.strerror}.", param="uds") from error
    opened.setblocking(False)
    return opened


def _is_stale(path: str) -> bool:
    """A socket file that nobody listens on any more."""
    if not Path(path).is_socket():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(path) == errno.ECONNREFUSED


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host!r} is in use. Stop the other program, or choose another port with --port."
    if error.errno in {errno.EACCES, errno.EPERM}:
        return f"Port {port} needs more rights than this user has. Choose one above 1023 with --port."
    return f"{host!r} port {port} cannot be bound: {error.strerror}."
