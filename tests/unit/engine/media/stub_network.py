"""A resolver and a way out that lead public-looking addresses to a server on loopback, and note where they were asked to go."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import subprocess
import threading
from typing import TYPE_CHECKING

from infinity_emb.engine.media.fetch import Network
from loopback import LoopbackServer

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = "93.184.216.34"
TRUSTED = ssl.create_default_context()
PUBLIC_IPV6 = "2606:2800:220:1:248:1893:25c8:1946"
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


class StubNetwork:
    """Names and where they lead; every connection goes to one loopback port, whatever address was asked for."""

    def __init__(self, port: int, names: dict[str, list[list[str]] | list[str]], tls: ssl.SSLContext | None = None):
        self._port = port
        self._names = names
        self.looked_up: list[str] = []
        self.connected: list[tuple[str, int]] = []
        self.network = Network(self.resolve, self.connect, tls or TRUSTED)

    def resolve(self, host: str, _port: int):
        """Answers of a name that rebinds are taken one after the other."""
        self.looked_up.append(host)
        if host not in self._names:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        answers = self._names[host]
        if answers and isinstance(answers[0], list):
            answers = answers.pop(0)
        return [ipaddress.ip_address(text) for text in answers]

    def connect(self, address, port: int, timeout_s: float) -> socket.socket:
        self.connected.append((str(address), port))
        return socket.create_connection(("127.0.0.1", self._port), timeout_s)


class RawServer:
    """Sends what a function writes to the socket, for answers that a real HTTP server would not give."""

    def __init__(self, speak):
        self._speak = speak
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.stop = threading.Event()
        self._thread = threading.Thread(target=self._main, daemon=True)

    def _main(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65536)
                    self._speak(connection, self.stop)
                except OSError:
                    continue  # the client gave up, as it should

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


def certificate(folder: Path, host: str) -> tuple[str, str]:
    """A certificate for a host that signs itself, and its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}"]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        *subject,
    ]
    command += ["-days", "2", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return str(cert), str(key)


class TlsServer(LoopbackServer):
    """An HTTPS server that notes the name each client asked for."""

    def __init__(self, answer, cert: str, key: str):
        super().__init__(answer)
        self.asked_for: list[str | None] = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        context.sni_callback = lambda _socket, name, _context: self.asked_for.append(name)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request, client_address):
        """A client that hangs up in the handshake is part of the tests."""
