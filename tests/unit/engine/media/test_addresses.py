"""The table of addresses and spellings that must not be reached: each is refused by its own error and nothing is asked."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

import pytest
from stub_network import PICTURE, PUBLIC, PUBLIC_IPV6, StubNetwork

from infinity_emb.engine.media import MediaPolicy, MediaRefusedError, Refusal
from infinity_emb.engine.media.addresses import refusal_of
from infinity_emb.engine.media.fetch import fetch
from infinity_emb.types import MediaUrls
from loopback import LoopbackServer


class Row(NamedTuple):
    """A URL and the rule it breaks."""

    url: str
    refusal: Refusal


REFUSED = [
    # loopback and this host
    Row("http://127.0.0.1/x.png", Refusal.LOOPBACK),
    Row("http://127.0.0.1:8080/x.png", Refusal.LOOPBACK),
    Row("http://127.255.255.254/", Refusal.LOOPBACK),
    Row("http://127.1.2.3/", Refusal.LOOPBACK),
    Row("http://0.0.0.0/", Refusal.LOOPBACK),
    Row("http://0.1.2.3/", Refusal.LOOPBACK),
    Row("https://[::1]/", Refusal.LOOPBACK),
    Row("http://[0:0:0:0:0:0:0:1]/", Refusal.LOOPBACK),
    Row("http://[::]/", Refusal.LOOPBACK),
    # private, link-local, shared
    Row("http://10.0.0.1/", Refusal.PRIVATE),
    Row("http://10.255.255.255/", Refusal.PRIVATE),
    Row("http://172.16.0.1/", Refusal.PRIVATE),
    Row("http://172.31.255.254/", Refusal.PRIVATE),
    Row("http://192.168.1.1/", Refusal.PRIVATE),
    Row("http://[fc00::1]/", Refusal.PRIVATE),
    Row("http://[fdff::1]/", Refusal.PRIVATE),
    Row("http://[fec0::1]/", Refusal.PRIVATE),
    Row("http://169.254.1.1/", Refusal.LINK_LOCAL),
    Row("http://[fe80::1]/", Refusal.LINK_LOCAL),
    Row("http://[febf::1]/", Refusal.LINK_LOCAL),
    Row("http://100.64.0.1/", Refusal.SHARED),
    Row("http://100.127.255.254/", Refusal.SHARED),
    # where clouds keep credentials
    Row("http://169.254.169.254/latest/meta-data/", Refusal.METADATA),
    Row("http://169.254.170.2/v2/credentials", Refusal.METADATA),
    Row("http://100.100.100.200/latest/meta-data/", Refusal.METADATA),
    Row("http://168.63.129.16/machine", Refusal.METADATA),
    Row("http://192.0.0.192/opc/v2/", Refusal.METADATA),
    Row("http://[fd00:ec2::254]/", Refusal.METADATA),
    # multicast, reserved, documentation
    Row("http://224.0.0.1/", Refusal.MULTICAST),
    Row("http://239.255.255.250:1900/", Refusal.MULTICAST),
    Row("http://[ff02::1]/", Refusal.MULTICAST),
    Row("http://240.0.0.1/", Refusal.RESERVED),
    Row("http://255.255.255.255/", Refusal.RESERVED),
    Row("http://192.0.0.8/", Refusal.RESERVED),
    Row("http://192.0.2.1/", Refusal.RESERVED),
    Row("http://198.18.0.1/", Refusal.RESERVED),
    Row("http://198.19.255.255/", Refusal.RESERVED),
    Row("http://198.51.100.7/", Refusal.RESERVED),
    Row("http://203.0.113.7/", Refusal.RESERVED),
    Row("http://[2001:db8::1]/", Refusal.RESERVED),
    Row("http://[2001:10::1]/", Refusal.RESERVED),
    Row("http://[3fff::1]/", Refusal.RESERVED),
    Row("http://[100::1]/", Refusal.RESERVED),
    Row("http://[5f00::1]/", Refusal.RESERVED),
    Row("http://[4000::1]/", Refusal.RESERVED),
    # IPv4 inside IPv6
    Row("http://[::ffff:127.0.0.1]/", Refusal.EMBEDDED),
    Row("http://[::ffff:7f00:1]/", Refusal.EMBEDDED),
    Row("http://[::ffff:169.254.169.254]/", Refusal.EMBEDDED),
    Row("http://[::ffff:0:127.0.0.1]/", Refusal.EMBEDDED),
    Row("http://[::127.0.0.1]/", Refusal.EMBEDDED),
    Row("http://[64:ff9b::127.0.0.1]/", Refusal.EMBEDDED),
    Row("http://[64:ff9b::a9fe:a9fe]/", Refusal.EMBEDDED),
    Row("http://[64:ff9b:1::1]/", Refusal.EMBEDDED),
    Row("http://[2002:7f00:1::]/", Refusal.EMBEDDED),
    Row("http://[2001:0:7f00:1::]/", Refusal.EMBEDDED),
    Row("http://192.88.99.1/", Refusal.EMBEDDED),
    # other spellings of 127.0.0.1
    Row("http://2130706433/", Refusal.NUMBER_AS_HOST),
    Row("http://0x7f000001/", Refusal.NUMBER_AS_HOST),
    Row("http://0x7f.0.0.1/", Refusal.NUMBER_AS_HOST),
    Row("http://0177.0.0.1/", Refusal.NUMBER_AS_HOST),
    Row("http://017700000001/", Refusal.NUMBER_AS_HOST),
    Row("http://127.1/", Refusal.NUMBER_AS_HOST),
    Row("http://127.0.1/", Refusal.NUMBER_AS_HOST),
    Row("http://127.0.0.0x1/", Refusal.NUMBER_AS_HOST),
    Row("http://1.2.3.4.5/", Refusal.NUMBER_AS_HOST),
    Row("http://256.256.256.256/", Refusal.NUMBER_AS_HOST),
    Row("http://127.0.0.1./", Refusal.LOOPBACK),
    Row("http://①②⑦.⓪.⓪.①/", Refusal.MALFORMED),
    Row("http://127。0。0。1/", Refusal.MALFORMED),
    Row("http://[::1%25lo]/", Refusal.MALFORMED),
    Row("http://[fe80::1%eth0]/", Refusal.MALFORMED),
    Row("http://%31%32%37.0.0.1/", Refusal.MALFORMED),
    # names that lead there
    Row("http://localhost/", Refusal.LOOPBACK),
    Row("http://LOCALHOST./", Refusal.LOOPBACK),
    Row("http://inside.test/", Refusal.PRIVATE),
    Row("http://metadata.test/computeMetadata/v1/", Refusal.METADATA),
    Row("http://mixed.test/", Refusal.LOOPBACK),
    Row("http://mapped.test/", Refusal.EMBEDDED),
    Row("http://nowhere.test/", Refusal.UNRESOLVED),
    Row("http://empty.test/", Refusal.UNRESOLVED),
    # other schemes and crooked URLs
    Row("file:///etc/hostname", Refusal.SCHEME),
    Row("FILE:///etc/hostname", Refusal.SCHEME),
    Row("ftp://picture.test/x.png", Refusal.SCHEME),
    Row("gopher://picture.test/", Refusal.SCHEME),
    Row("dict://picture.test:11211/stats", Refusal.SCHEME),
    Row("jar:http://picture.test!/x", Refusal.SCHEME),
    Row("unix:///run/docker.sock", Refusal.SCHEME),
    Row("javascript:alert(1)", Refusal.SCHEME),
    Row("//picture.test/x.png", Refusal.SCHEME),
    Row("/etc/hostname", Refusal.SCHEME),
    Row("picture.test/x.png", Refusal.SCHEME),
    Row("", Refusal.SCHEME),
    Row("http://user:pass@picture.test/", Refusal.CREDENTIALS),
    Row("http://picture.test@127.0.0.1/", Refusal.CREDENTIALS),
    Row("http://127.0.0.1#@picture.test/", Refusal.LOOPBACK),
    Row("http://picture.test\\@127.0.0.1/", Refusal.MALFORMED),
    Row("http://picture.test /x.png", Refusal.MALFORMED),
    Row("http://picture.test\t/x.png", Refusal.MALFORMED),
    Row("http://picture.test/x\r\nHost: inside", Refusal.MALFORMED),
    Row("http://picture.test/\x00", Refusal.MALFORMED),
    Row("http:///x.png", Refusal.MALFORMED),
    Row("http://.picture.test/", Refusal.MALFORMED),
    Row("http://-picture.test/", Refusal.MALFORMED),
    Row("http://picture..test/", Refusal.MALFORMED),
    Row(f"http://{'a' * 64}.test/", Refusal.MALFORMED),
    Row("http://picture.test:0/", Refusal.MALFORMED),
    Row("http://picture.test:65536/", Refusal.MALFORMED),
    Row("http://picture.test:80a/", Refusal.MALFORMED),
    Row("http://[::1/", Refusal.MALFORMED),
    Row("http://[nonsense]/", Refusal.MALFORMED),
    Row("http://[v1.x]/", Refusal.MALFORMED),
    Row("http://picture.test/" + "a" * 9000, Refusal.MALFORMED),
]

NAMES = {
    "picture.test": [PUBLIC],
    "localhost": ["127.0.0.1", "::1"],
    "inside.test": ["10.1.2.3"],
    "metadata.test": ["169.254.169.254"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "mapped.test": ["::ffff:10.0.0.1"],
    "empty.test": [],
}


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: ascii(row.url)[:60])
def test_an_address_that_is_not_public_is_refused_and_never_asked(row, picture_server):
    stub = StubNetwork(picture_server.server_address[1], NAMES)
    with pytest.raises(MediaRefusedError) as caught:
        fetch(row.url, "image", MediaPolicy(), stub.network)
    assert caught.value.refusal is row.refusal
    assert len(caught.value.message) > 20
    assert stub.connected == []
    assert picture_server.requests == []


def leads_there(row: Row) -> bool:
    """Whether the URL can stand in a Location header and means the same there."""
    url = row.url
    relative = "://" not in url and not url.startswith(("jar:", "javascript:"))
    return url.isascii() and url.isprintable() and " " not in url and not relative and url != "http:///x.png"


@pytest.mark.parametrize("row", [row for row in REFUSED if leads_there(row)], ids=lambda row: row.url[:60])
def test_a_redirect_there_is_refused_too(row):
    def redirect(exchange) -> None:
        exchange.send(302, b"", {"Location": row.url})

    with LoopbackServer(redirect) as server:
        stub = StubNetwork(server.server_address[1], NAMES)
        with pytest.raises(MediaRefusedError) as caught:
            fetch("http://picture.test/", "image", MediaPolicy(), stub.network)
        assert caught.value.refusal is row.refusal
        assert [entry[0] for entry in stub.connected] == [PUBLIC]
        assert len(server.requests) == 1


@pytest.mark.parametrize("text", [PUBLIC, "8.8.8.8", "1.1.1.1", "172.32.0.1", "100.128.0.1", "198.20.0.1", PUBLIC_IPV6])
def test_public_addresses_are_public(text):
    assert refusal_of(ipaddress.ip_address(text)) is None


@pytest.mark.parametrize("url", ["http://127.0.0.1/x.png", "http://inside.test/x.png", "http://[::1]/x.png"])
def test_the_operator_can_open_private_addresses(url, picture_server):
    stub = StubNetwork(picture_server.server_address[1], NAMES)
    media = fetch(url, "image", MediaPolicy(urls=MediaUrls.ANY), stub.network)
    assert media.content == PICTURE
