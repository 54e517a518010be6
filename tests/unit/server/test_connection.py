"""Hostile bytes on the socket: smuggling, endless or slow headers, pipelining."""

# ruff: noqa: ASYNC110 - the loops wait for a server in the same event loop

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from infinity_emb.server import connection

GOOD = b'POST /v1/embeddings HTTP/1.1\r\nhost: x\r\ncontent-length: 14\r\n\r\n{"input": "x"}'


async def talk(port, *pieces, ends=True):
    """Everything the server says to these bytes until it closes or is silent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
    await writer.drain()
    if ends:
        writer.write_eof()
    try:
        return await asyncio.wait_for(reader.read(), 10.0)
    finally:
        writer.close()


def conversation(running, monkeypatch, *pieces, ends=True):
    async def main():
        server = running(monkeypatch)
        server.may_load.set()
        serving = asyncio.create_task(server.process.serve())
        while not server.ready:
            await asyncio.sleep(0)
        said = await talk(server.ports[0], *pieces, ends=ends)
        healthy = await talk(server.ports[0], b"GET /health HTTP/1.0\r\n\r\n")
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
        assert healthy.startswith(b"HTTP/1.1 200")
        return said

    return asyncio.run(main())


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\ncontent-length: 5\r\n\r\n0\r\n\r\nG",
        b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-length: +6\r\n\r\n{}",
        b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n{}",
        b"POST /embed HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nhost: x\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
        b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-length : 2\r\n\r\n{}",
        b"POST /embed HTTP/1.1\r\nhost: x\r\n content-length: 2\r\n\r\n{}",
        b"GET /hea\x00lth HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nx: a\x00b\r\n\r\n",
        b"GET /health HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"NONSENSE\r\n\r\n",
    ],
)
def test_a_request_that_two_servers_could_read_differently_is_refused(running, monkeypatch, request_):
    said = conversation(running, monkeypatch, request_)
    assert said.startswith(b"HTTP/1.1 400") or said == b""
    assert said.count(b"HTTP/1.1") <= 1


def test_pipelined_requests_are_answered_in_order(running, monkeypatch):
    said = conversation(running, monkeypatch, GOOD + b"GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    assert said.count(b"HTTP/1.1 200") == 2
    assert said.index(b'"embedding"') < said.index(b'"alive"')


def test_headers_without_end_are_refused(running, monkeypatch):
    head = b"GET /health HTTP/1.1\r\n"
    said = conversation(running, monkeypatch, head, *[b"x-filler: " + b"a" * 1000 + b"\r\n"] * 100)
    assert said.startswith(b"HTTP/1.1 431")


@pytest.mark.parametrize("pieces", [(b"GET /health HT",), ()])
def test_headers_that_do_not_come_are_given_up(running, monkeypatch, pieces):
    monkeypatch.setattr(connection, "HEADER_TIMEOUT_S", 0.05)
    said = conversation(running, monkeypatch, *pieces, ends=False)
    assert said.startswith(b"HTTP/1.1 408")


def test_slow_headers_after_an_answer_are_given_up_too(running, monkeypatch):
    monkeypatch.setattr(connection, "HEADER_TIMEOUT_S", 0.2)

    async def main():
        server = running(monkeypatch)
        server.may_load.set()
        serving = asyncio.create_task(server.process.serve())
        while not server.ready:
            await asyncio.sleep(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", server.ports[0])
        writer.write(GOOD)
        assert b"200 OK" in await reader.readuntil(b'"created":')
        writer.write(b"GET /health HT")
        assert b"HTTP/1.1 408" in await asyncio.wait_for(reader.read(), 10.0)
        writer.close()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await serving == 0

    asyncio.run(main())


def test_a_large_body_in_the_first_packet_is_no_large_header(running, monkeypatch):
    body = b'{"input": "' + b"a" * 200_000 + b'"}'
    head = b"POST /v1/embeddings HTTP/1.1\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
    assert conversation(running, monkeypatch, head + body).startswith(b"HTTP/1.1 200")
