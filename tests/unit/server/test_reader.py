from __future__ import annotations

import pytest

from infinity_emb.server.connection import HEADER_LIMIT_BYTES
from unit.server.wire import on_the_wire

GET = b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n"


def heads(said: bytes) -> list[bytes]:
    """Status lines in order."""
    return [line for line in said.split(b"\r\n") if line.startswith(b"HTTP/1.1") or b"HTTP/1.1 " in line]


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_request_may_come_in_any_pieces(step):
    async def main(wire):
        data = b"POST /a%20b?q=1 HTTP/1.1\r\nContent-Length: 3\r\nX: y\r\n\r\nabc"
        await wire.send(*[data[start : start + step] for start in range(0, len(data), step)])
        assert wire.application.seen == ["/a b"]
        assert wire.said.endswith(b"/a b abc")

    on_the_wire(main)


def test_a_wish_for_another_protocol_is_passed_over():
    async def main(wire):
        upgrade = (
            b"GET /%s HTTP/1.1\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: x\r\n\r\n"
        )
        await wire.send(upgrade % b"a" + GET % b"b", upgrade % b"c", GET % b"d")
        assert wire.application.seen == ["/a", "/b", "/c", "/d"]

    on_the_wire(main)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00",
        b"CONNECT x:1 HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(garbage):
    async def main(wire):
        await wire.send(garbage)
        assert wire.said.startswith(b"HTTP/1.1 400")
        assert wire.transport.ended
        assert wire.application.seen == []

    on_the_wire(main)


def test_garbage_behind_requests_is_refused_after_their_answers():
    async def main(wire):
        wire.application.may_answer.clear()
        await wire.send(GET % b"a" + GET % b"b" + b"\x00\x00\r\n\r\n", b"more")
        assert wire.said == b""
        wire.application.may_answer.set()
        await wire.settled()
        assert [line[-15:] for line in heads(wire.said)] == [b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK", b"400 Bad Request"]
        assert wire.transport.ended

    on_the_wire(main)


def test_a_body_that_breaks_off_into_garbage_is_refused_at_once():
    async def main(wire):
        await wire.send(b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n", b"ZZ\r\n")
        assert wire.said.startswith(b"HTTP/1.1 400")
        assert wire.transport.ended

    on_the_wire(main)


@pytest.mark.parametrize(
    "before",
    [
        b"",
        b"GET /a HTTP/1.1\r\nx: ",
        b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: ",
        b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1;x=",
    ],
)
def test_nothing_that_is_not_a_body_may_be_endless(before):
    async def main(wire):
        wire.application.reads_body = False
        wire.application.may_answer.clear()
        filler = b"\r\n" if not before else b"a"
        pieces = [filler * 1000] * (HEADER_LIMIT_BYTES // (1000 * len(filler)) + 2)
        await wire.send(before, *pieces)
        assert wire.said.startswith(b"HTTP/1.1 431")
        assert wire.transport.ended

    on_the_wire(main)
