"""The real command in a process that may only listen: every attempt to reach another machine is told and refused."""

from __future__ import annotations

import ipaddress
import socket
import sys

from infinity_emb.cli import main

_connect = socket.socket.connect
_look_up = socket.getaddrinfo


def _is_here(host: object) -> bool:
    if host in {None, "", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def _connect_here(self: socket.socket, address: object) -> None:
    if self.family in {socket.AF_INET, socket.AF_INET6} and not _is_here(address[0]):  # type: ignore[index]
        sys.stdout.write(f"OUTBOUND connection to {address!r}\n")
        raise OSError("there is no network")
    _connect(self, address)  # type: ignore[arg-type]


def _look_up_here(host: object, *rest: object, **named: object) -> object:
    if not _is_here(host):
        sys.stdout.write(f"OUTBOUND look-up of {host!r}\n")
        raise OSError("there is no network")
    return _look_up(host, *rest, **named)  # type: ignore[arg-type]


socket.socket.connect = _connect_here  # type: ignore[method-assign]
socket.getaddrinfo = _look_up_here  # type: ignore[assignment]
sys.exit(main())
