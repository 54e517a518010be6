"""Cases about the way of a picture or sound to the model, as far as it is there: fetching, and what a request holds."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import socket

import pytest

from infinity_emb.engine.media import MediaFetcher, MediaPolicy, MediaRefusedError, Refusal
from infinity_emb.engine.media.fetch import Network
from infinity_emb.types import MediaUrls
from loopback import LoopbackServer

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
CONTENT = base64.b64encode(PICTURE).decode()
PUBLIC = ipaddress.ip_address("93.184.215.14")
NAMES = {"public.test": PUBLIC, "inside.test": ipaddress.ip_address("127.0.0.1"), "listed.test": PUBLIC}


def answer(exchange) -> None:
    """A picture, or the way to this machine."""
    port = exchange.server.server_address[1]
    targets = {
        "/to-loopback": f"http://127.0.0.1:{port}/secret",
        "/to-name": "http://inside.test/secret",
        "/to-metadata": "http://169.254.169.254/latest/meta-data/",
        "/to-file": "file:///etc/hostname",
        "/twice": "http://public.test/to-loopback",
    }
    target = targets.get(exchange.path)
    if target is None:
        exchange.send(200, PICTURE, {"Content-Type": "image/png"})
    else:
        exchange.send(302, b"", {"Location": target})


@pytest.fixture
def stub():
    with LoopbackServer(answer) as server:
        yield server


def fetch(stub, *urls: str, **policy):
    """Fetch through a network in which every address that was let through leads to the stub."""
    port = stub.server_address[1]
    network = Network(
        resolve=lambda host, _: [NAMES[host]] if host in NAMES else [],
        connect=lambda _, __, timeout_s: socket.create_connection(("127.0.0.1", port), timeout_s),
    )
    fetcher = MediaFetcher(MediaPolicy(**policy), network)

    async def main():
        try:
            return await fetcher.fetch(urls, "image")
        finally:
            fetcher.close()

    return asyncio.run(main())


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/x.png",
        "http://[::1]:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://inside.test/x.png",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://user@127.0.0.1/",
        "http://public.test@127.0.0.1/",
        "file:///etc/hostname",
        "ftp://public.test/x.png",
        "gopher://public.test/",
    ],
)
def test_b086_an_address_that_is_not_public_is_refused_and_not_asked(stub, url):
    with pytest.raises(MediaRefusedError) as caught:
        fetch(stub, "http://public.test/good.png", url.format(port=stub.server_address[1]))
    assert caught.value.item_index == 1
    assert {request.path for request in stub.requests} <= {"/good.png"}


@pytest.mark.parametrize(
    ("path", "refusal"),
    [
        ("/to-loopback", Refusal.LOOPBACK),
        ("/to-name", Refusal.LOOPBACK),
        ("/to-metadata", Refusal.METADATA),
        ("/to-file", Refusal.SCHEME),
        ("/twice", Refusal.LOOPBACK),
    ],
)
def test_b086_every_hop_of_a_redirect_is_checked(stub, path, refusal):
    with pytest.raises(MediaRefusedError) as caught:
        fetch(stub, f"http://public.test{path}")
    assert caught.value.refusal is refusal
    assert "/secret" not in {request.path for request in stub.requests}


def test_b086_with_a_list_of_hosts_only_these_are_asked(stub):
    (media,) = fetch(stub, "http://listed.test/x.png", hosts=("listed.test",))
    assert media.content == PICTURE
    with pytest.raises(MediaRefusedError) as caught:
        fetch(stub, "http://public.test/x.png", hosts=("listed.test",))
    assert caught.value.refusal is Refusal.HOST_NOT_LISTED


def test_b086_the_guard_can_be_switched_off_and_so_can_fetching(stub):
    (media,) = fetch(stub, "http://inside.test/x.png", urls=MediaUrls.ANY)
    assert media.content == PICTURE
    with pytest.raises(MediaRefusedError):
        fetch(stub, "http://public.test/x.png", urls=MediaUrls.NONE)


@pytest.mark.parametrize(
    "uri",
    [
        f"data:image/png;base64,{CONTENT}",
        f"DATA:IMAGE/PNG;BASE64,{CONTENT}",
        f"data:image/png;charset=utf-8;base64,{CONTENT}",
        f"data:image/png;base64,{CONTENT[:40]}\n{CONTENT[40:]}\r\n",
    ],
)
def test_b088_a_data_uri_is_the_bytes_that_a_url_would_give(stub, uri):
    by_uri, by_url = fetch(stub, uri, "http://public.test/x.png")
    assert by_uri == by_url


@pytest.mark.parametrize(
    "uri",
    [
        "data:image/png;base64,not!!base64",
        "data:image/png,abc",
        "data:image/png;base64",
        "data:image/png;base64,",
        "data:text/plain;base64,aGVsbG8=",
        "data:,",
        "data:",
    ],
)
def test_b088_a_broken_data_uri_or_one_of_another_type_is_refused_by_its_index(stub, uri):
    with pytest.raises(MediaRefusedError) as caught:
        fetch(stub, "http://public.test/x.png", uri)
    assert caught.value.item_index == 1
    assert caught.value.refusal in {Refusal.DATA_URI, Refusal.CONTENT_TYPE}
