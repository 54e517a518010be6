"""What a host may answer: redirects, sizes, times, types, encodings; and that the checked address is the one asked."""

from __future__ import annotations

import gzip
import ssl
import time
import zlib

import pytest
from stub_network import PICTURE, PUBLIC, PUBLIC_IPV6, RawServer, StubNetwork, TlsServer, certificate

from infinity_emb.engine.media import MediaPolicy, MediaRefusedError, Refusal
from infinity_emb.engine.media.fetch import fetch
from infinity_emb.types import MediaUrls
from loopback import LoopbackServer

NAMES = {"picture.test": [PUBLIC], "cdn.picture.test": [PUBLIC_IPV6], "other.test": [PUBLIC]}
URL = "http://picture.test/x.png"
SMALL = MediaPolicy(max_bytes=2000, timeout_s=5.0)


def refusal_when(answer, policy: MediaPolicy = SMALL, url: str = URL, kind: str = "image") -> Refusal:
    """Which rule an answer breaks."""
    with LoopbackServer(answer) as server:
        stub = StubNetwork(server.server_address[1], NAMES)
        with pytest.raises(MediaRefusedError) as caught:
            fetch(url, kind, policy, stub.network)
    return caught.value.refusal


def refusal_of_bytes(speak, policy: MediaPolicy = SMALL) -> Refusal:
    """The same for an answer written byte by byte."""
    with RawServer(speak) as server:
        stub = StubNetwork(server.port, NAMES)
        with pytest.raises(MediaRefusedError) as caught:
            fetch(URL, "image", policy, stub.network)
    return caught.value.refusal


def sends(status: int = 200, body: bytes = PICTURE, **headers: str):
    named = {"Content-Type": "image/png", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return lambda exchange: exchange.send(status, body, named)


@pytest.mark.parametrize(
    ("url", "authority", "path"),
    [
        (URL, "picture.test", "/x.png"),
        ("http://PICTURE.test./a/b?c=d&e=%20#part", "picture.test", "/a/b?c=d&e=%20"),
        ("http://picture.test:8123", "picture.test:8123", "/"),
        ("http://picture.test?x=1", "picture.test", "/?x=1"),
        (f"http://[{PUBLIC_IPV6}]/x", f"[{PUBLIC_IPV6}]", "/x"),
        ("http://picture.test/grün.png", "picture.test", "/gr%C3%BCn.png"),
    ],
)
def test_a_public_file_is_fetched_under_its_own_name(picture_server, url, authority, path):
    stub = StubNetwork(picture_server.server_address[1], NAMES)
    media = fetch(url, "image", MediaPolicy(), stub.network)
    assert (media.content, media.content_type) == (PICTURE, "image/png")
    (seen,) = picture_server.requests
    assert (seen.method, seen.headers["host"], seen.path) == ("GET", authority, path)
    told = {name.lower() for name in seen.headers}
    assert not {"cookie", "authorization", "referer", "traceparent", "tracestate", "baggage", "x-request-id"} & told


def test_the_address_that_was_checked_is_the_one_asked_even_if_the_name_moves(picture_server):
    names = {"picture.test": [[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]]}
    stub = StubNetwork(picture_server.server_address[1], names)
    fetch(URL, "image", MediaPolicy(), stub.network)
    assert stub.looked_up == ["picture.test"]
    assert stub.connected == [(PUBLIC, 80)]


def test_a_name_that_moves_before_a_redirect_is_checked_again():
    with LoopbackServer(lambda exchange: exchange.send(302, b"", {"Location": "/again"})) as server:
        stub = StubNetwork(server.server_address[1], {"picture.test": [[PUBLIC], ["10.0.0.1"]]})
        with pytest.raises(MediaRefusedError) as caught:
            fetch(URL, "image", MediaPolicy(), stub.network)
        assert caught.value.refusal is Refusal.PRIVATE
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(status):
    def answer(exchange) -> None:
        if exchange.path == "/x.png":
            exchange.send(status, b"", {"Location": "http://cdn.picture.test:81/y.png"})
        else:
            exchange.send(200, PICTURE, {"Content-Type": "image/png"})

    with LoopbackServer(answer) as server:
        stub = StubNetwork(server.server_address[1], NAMES)
        assert fetch(URL, "image", MediaPolicy(), stub.network).content == PICTURE
        assert stub.connected == [(PUBLIC, 80), (PUBLIC_IPV6, 81)]
        assert server.requests[1].headers["host"] == "cdn.picture.test:81"


def test_redirects_have_an_end():
    seen = []

    def answer(exchange) -> None:
        seen.append(exchange.path)
        exchange.send(302, b"", {"Location": exchange.path + "x"})

    assert refusal_when(answer) is Refusal.REDIRECTS
    assert len(seen) == 1 + MediaPolicy().max_redirects


def test_a_redirect_must_say_where_to():
    assert refusal_when(sends(302)) is Refusal.REDIRECT_TARGET


@pytest.mark.parametrize("status", [204, 206, 304, 400, 401, 404, 500, 503])
def test_only_200_is_an_answer(status):
    assert refusal_when(sends(status, b"")) is Refusal.STATUS


@pytest.mark.parametrize(
    ("kind", "content_type", "taken"),
    [
        ("image", "image/png", True),
        ("image", "IMAGE/JPEG; charset=binary", True),
        ("image", "application/octet-stream", True),
        ("image", "", True),
        ("audio", "audio/wav", True),
        ("image", "audio/wav", False),
        ("audio", "image/png", False),
        ("image", "text/html", False),
        ("image", "application/json", False),
        ("image", "image/svg+xml", False),
        ("image", "imagepng", False),
    ],
)
def test_the_type_must_be_that_of_the_kind(kind, content_type, taken):
    answer = sends(Content_Type=content_type)
    if not taken:
        assert refusal_when(answer, kind=kind) is Refusal.CONTENT_TYPE
        return
    with LoopbackServer(answer) as server:
        stub = StubNetwork(server.server_address[1], NAMES)
        assert fetch(URL, kind, SMALL, stub.network).content == PICTURE


def test_an_announced_size_over_the_limit_is_refused_before_reading():
    def speak(connection, _stop) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")

    assert refusal_of_bytes(speak) is Refusal.TOO_LARGE


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until-closed"])
def test_an_endless_answer_is_cut_at_the_limit(chunked):
    sent = 0

    def speak(connection, stop) -> None:
        nonlocal sent
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + (b"Transfer-Encoding: chunked\r\n" if chunked else b"") + b"\r\n")
        piece = b"x" * 4096
        while not stop.is_set():
            connection.sendall(b"1000\r\n" + piece + b"\r\n" if chunked else piece)
            sent += len(piece)

    assert refusal_of_bytes(speak) is Refusal.TOO_LARGE
    assert sent < 64 * 1024 * 1024  # what fits into socket buffers, not what it would have sent


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_answer_is_unpacked_within_the_limit(encoding):
    packed = gzip.compress(PICTURE) if encoding == "gzip" else zlib.compress(PICTURE)
    with LoopbackServer(sends(200, packed, Content_Encoding=encoding)) as server:
        stub = StubNetwork(server.server_address[1], NAMES)
        assert fetch(URL, "image", SMALL, stub.network).content == PICTURE
        assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_bomb_is_cut_at_the_limit():
    bomb = gzip.compress(b"\x00" * 50_000_000)
    assert len(bomb) < 60_000
    policy = MediaPolicy(max_bytes=100_000, timeout_s=5.0)
    assert refusal_when(sends(200, bomb, Content_Encoding="gzip"), policy) is Refusal.TOO_LARGE


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "nonsense"])
def test_other_encodings_are_refused(encoding):
    assert refusal_when(sends(Content_Encoding=encoding)) is Refusal.CONTENT_ENCODING


@pytest.mark.parametrize("body", [b"", b"not gzip", gzip.compress(PICTURE)[:-20]], ids=["empty", "garbage", "cut"])
def test_a_broken_compressed_answer_is_refused(body):
    assert refusal_when(sends(200, body, Content_Encoding="gzip")) is Refusal.BROKEN_ANSWER


def test_an_empty_answer_is_refused():
    assert refusal_when(sends(200, b"")) is Refusal.BROKEN_ANSWER


def test_an_answer_that_is_cut_off_is_refused():
    assert refusal_when(lambda exchange: exchange.send(200, PICTURE, cut_after=100)) is Refusal.BROKEN_ANSWER


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
    ],
    ids=["nothing", "nonsense", "status", "chunk", "many-headers", "long-header", "ssh"],
)
def test_what_is_not_http_is_refused(raw):
    assert refusal_of_bytes(lambda connection, _stop: connection.sendall(raw)) is Refusal.BROKEN_ANSWER


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
    ids=["silent", "in-a-header", "in-the-body", "continue"],
)
def test_a_host_that_drips_gets_one_deadline_not_one_a_byte(beginning):
    def speak(connection, stop) -> None:
        connection.sendall(beginning)
        while not stop.wait(0.05):
            connection.sendall(b"y" if beginning else b"")

    started_s = time.monotonic()
    assert refusal_of_bytes(speak, MediaPolicy(timeout_s=0.6)) in {Refusal.TOO_SLOW, Refusal.BROKEN_ANSWER}
    assert time.monotonic() - started_s < 10


def test_all_redirects_share_one_deadline():
    def speak(connection, stop) -> None:
        stop.wait(0.3)
        connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n")

    assert refusal_of_bytes(speak, MediaPolicy(timeout_s=0.5, max_redirects=1000)) is Refusal.TOO_SLOW


def test_a_closed_port_is_unreachable():
    with LoopbackServer(sends()) as server:
        port = server.server_address[1]
    stub = StubNetwork(port, NAMES)
    with pytest.raises(MediaRefusedError) as caught:
        fetch(URL, "image", SMALL, stub.network)
    assert caught.value.refusal is Refusal.UNREACHABLE


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("http://picture.test/", True),
        ("http://PICTURE.test./", True),
        ("http://cdn.picture.test/", False),
        ("http://a.other.test/", True),
        ("http://a.b.other.test/", True),
        ("http://other.test/", False),
        ("http://evilother.test/", False),
        ("http://picture.test.evil.test/", False),
        (f"http://{PUBLIC}/", False),
    ],
)
def test_with_a_list_only_its_hosts_are_asked(picture_server, url, taken):
    names = {
        key: [PUBLIC] for key in ["picture.test", "cdn.picture.test", "a.other.test", "a.b.other.test", "other.test"]
    }
    stub = StubNetwork(picture_server.server_address[1], names)
    policy = MediaPolicy(hosts=("picture.test", ".other.test"))
    if taken:
        assert fetch(url, "image", policy, stub.network).content == PICTURE
        return
    with pytest.raises(MediaRefusedError) as caught:
        fetch(url, "image", policy, stub.network)
    assert caught.value.refusal is Refusal.HOST_NOT_LISTED
    assert stub.looked_up == []


def test_a_redirect_may_not_leave_the_list():
    policy = MediaPolicy(hosts=("picture.test",))
    assert refusal_when(sends(302, b"", Location="http://other.test/"), policy) is Refusal.HOST_NOT_LISTED


def test_a_listed_host_must_still_be_public(picture_server):
    stub = StubNetwork(picture_server.server_address[1], {"picture.test": ["192.168.0.1"]})
    with pytest.raises(MediaRefusedError) as caught:
        fetch(URL, "image", MediaPolicy(hosts=("picture.test",)), stub.network)
    assert caught.value.refusal is Refusal.PRIVATE


def test_fetching_can_be_switched_off(picture_server):
    stub = StubNetwork(picture_server.server_address[1], NAMES)
    with pytest.raises(MediaRefusedError) as caught:
        fetch(URL, "image", MediaPolicy(urls=MediaUrls.NONE), stub.network)
    assert caught.value.refusal is Refusal.OFF
    assert stub.looked_up == []


def test_tls_asks_for_the_name_and_checks_the_certificate_while_the_address_is_pinned(tmp_path):
    cert, key = certificate(tmp_path, "picture.test")
    with TlsServer(sends(), cert, key) as server:
        stub = StubNetwork(server.server_address[1], NAMES, ssl.create_default_context(cafile=cert))
        assert fetch("https://picture.test/x.png", "image", SMALL, stub.network).content == PICTURE
        assert server.asked_for == ["picture.test"]
        assert stub.connected == [(PUBLIC, 443)]
        with pytest.raises(MediaRefusedError) as caught:
            fetch("https://other.test/x.png", "image", SMALL, stub.network)
        assert caught.value.refusal is Refusal.TLS
        stranger = StubNetwork(server.server_address[1], NAMES)
        with pytest.raises(MediaRefusedError) as caught:
            fetch("https://picture.test/x.png", "image", SMALL, stranger.network)
        assert caught.value.refusal is Refusal.TLS
        assert len(server.requests) == 1


def test_a_message_never_shows_where_a_private_name_leads():
    stub = StubNetwork(1, {"picture.test": ["10.11.12.13"]})
    with pytest.raises(MediaRefusedError) as caught:
        fetch(URL, "image", SMALL, stub.network)
    assert "10.11.12.13" not in caught.value.message
