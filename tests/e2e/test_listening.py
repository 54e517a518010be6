"""Other ways in than plain HTTP on a port: TLS, and a unix socket."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import threading
import time

import httpx
import pytest

from serving import Server, serve

DUMMY = ("--engine", "dummy", "--model-id", "some/dummy")
BODY = {"input": "good morning"}
WAIT_S = 60


def until_ready(server: Server) -> None:
    """The block that a server writes when it can answer; its address is not for plain HTTP here."""
    deadline_s = time.monotonic() + WAIT_S
    while "Try next" not in server.output:
        assert server.process.poll() is None, server.output
        assert time.monotonic() < deadline_s, server.output
        threading.Event().wait(0.05)


@pytest.fixture
def certificate(tmp_path):
    """Self-signed, for localhost: the certificate and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("a certificate is made with the openssl command")
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    paths = [str(tmp_path / name) for name in ("cert.pem", "key.pem")]
    command = ["openssl", "req", *kind, *names, "-out", paths[0], "-keyout", paths[1]]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return paths


def test_with_a_certificate_it_speaks_tls_and_nothing_else(certificate):
    cert, key = certificate
    with serve(*DUMMY, "--ssl-certfile", cert, "--ssl-keyfile", key) as server:
        url = server.url.replace("http://127.0.0.1", "https://localhost")
        trusting = ssl.create_default_context(cafile=cert)
        until_ready(server)
        with httpx.Client(base_url=url, verify=trusting, timeout=WAIT_S) as client:
            assert client.post("/v1/embeddings", json=BODY).status_code == 200
        with pytest.raises(httpx.ConnectError, match="certificate verify failed"):
            httpx.get(f"{url}/health", verify=ssl.create_default_context())
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{server.url}/health")
        old = ssl.create_default_context(cafile=cert)
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        old.set_ciphers("AES128-SHA")  # no forward secrecy
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health", verify=old)
        assert server.stop() == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no unix sockets in Python")
def test_on_a_unix_socket_no_port_is_open(tmp_path):
    path = str(tmp_path / "s.sock")
    with serve(*DUMMY, "--uds", path) as server:
        until_ready(server)
        with httpx.Client(transport=httpx.HTTPTransport(uds=path), base_url="http://any", timeout=WAIT_S) as client:
            assert client.post("/v1/embeddings", json=BODY).status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{server.url}/health")
        assert server.stop() == 0
    assert list(tmp_path.iterdir()) == []
