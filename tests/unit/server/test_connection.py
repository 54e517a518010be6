"""Hostile bytes on the socket: smuggling, endless or slow headers, pipelining."""

# ruff: noqa: ASYNC110 - the loops wait for a server in the same event loop

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from infinity_emb.server import connection
from unit.server.wire import Wire, on_the_wire

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


def test_an_answer_is_written_in_one_piece():
    async def main(wire):
        await wire.send(
            GOOD, b"GET /b HTTP/1.1\r\n\r\n", b"POST /c HTTP/1.1\r\ncontent-length: 50000\r\n\r\n" + b"x" * 50000
        )
        assert [data.count(b"HTTP/1.1 200 OK\r\n") for data in wire.transport.writes] == [1, 1, 1]
        assert len(wire.transport.writes[2]) > 50000

    on_the_wire(main)


def test_a_head_request_gets_the_head_alone():
    async def main(wire):
        await wire.send(b"HEAD /b HTTP/1.1\r\n\r\n")
        assert wire.said == b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n"

    on_the_wire(main)


def test_requests_wait_for_their_turn_and_the_client_with_them():
    async def main(wire):
        wire.application.may_answer.clear()
        await wire.send(b"".join(b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(3)))
        assert wire.application.seen == ["/0"]
        assert not wire.transport.reading
        wire.application.may_answer.set()
        await wire.settled()
        assert wire.application.seen == ["/0", "/1", "/2"]
        assert wire.transport.reading

    on_the_wire(main)


@pytest.mark.parametrize("last", [b"GET /a HTTP/1.0\r\n\r\n", b"GET /a HTTP/1.1\r\nconnection: close\r\n\r\n"])
def test_a_client_that_wants_no_further_answer_gets_none(last):
    async def main(wire):
        await wire.send(last + b"GET /b HTTP/1.1\r\n\r\n")
        assert wire.application.seen == ["/a"]
        assert b"connection: close\r\n" in wire.said
        assert wire.transport.closed

    on_the_wire(main)


def test_an_answer_waits_until_the_client_has_read_the_one_before():
    async def main(wire):
        wire.connection.pause_writing()
        await wire.send(GOOD)
        assert wire.said == b""
        wire.connection.resume_writing()
        await wire.settled()
        assert wire.said.startswith(b"HTTP/1.1 200")

    on_the_wire(main)


def test_a_body_that_comes_after_its_answer_is_passed_over_up_to_a_limit():
    async def main(wire):
        wire.application.reads_body = False
        await wire.send(b"POST /a HTTP/1.1\r\ncontent-length: 100000\r\n\r\n", b"x" * 100_000)
        await wire.send(b"POST /b HTTP/1.1\r\ncontent-length: 100000000\r\n\r\n")
        assert wire.said.count(b"200 OK") == 2
        await wire.send(*[b"x" * 1_000_000] * (connection.LEFTOVER_LIMIT_BYTES // 1_000_000 + 1))
        assert b"HTTP/1.1 431" in wire.said
        assert wire.transport.ended

    on_the_wire(main)


def test_what_a_refused_client_still_sends_is_dropped_until_it_leaves_or_time_is_up(monkeypatch):
    async def main(wire):
        await wire.send(b"no request\r\n\r\n")
        said = wire.said
        assert said.startswith(b"HTTP/1.1 400")
        assert wire.transport.ended
        assert not wire.transport.closed
        await wire.send(GOOD, b"x" * 100_000)
        assert wire.said == said
        while not wire.transport.closed:
            await asyncio.sleep(0.005)

    monkeypatch.setattr(connection, "LINGER_S", 0.02)
    on_the_wire(main)


def test_an_early_answer_that_ends_the_connection_does_not_cut_off_the_body_that_still_comes(monkeypatch):
    async def main(wire):
        wire.application.reads_body = False
        await wire.send(b"POST /a HTTP/1.1\r\nconnection: close\r\ncontent-length: 100000\r\n\r\n")
        assert b"200 OK" in wire.said
        assert wire.transport.ended
        assert not wire.transport.closed
        while not wire.transport.closed:
            await asyncio.sleep(0.005)

    monkeypatch.setattr(connection, "LINGER_S", 0.02)
    on_the_wire(main)


def test_an_idle_connection_is_closed_without_a_word(monkeypatch):
    async def main(wire):
        await wire.send(GOOD)
        said = wire.said
        while not wire.transport.closed:
            await asyncio.sleep(0.005)
        assert wire.said == said

    monkeypatch.setattr(connection, "HEADER_TIMEOUT_S", 0.01)
    monkeypatch.setattr(connection, "KEEP_ALIVE_S", 0.02)
    on_the_wire(main)


def test_a_stop_closes_idle_connections_now_and_busy_ones_after_their_last_answer():
    async def main(wire):
        wire.application.may_answer.clear()
        await wire.send(b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n")
        wire.connection.shutdown()
        assert not wire.transport.closed
        wire.application.may_answer.set()
        await wire.settled()
        assert wire.said.count(b"200 OK") == 2
        assert wire.transport.closed
        idle = Wire()
        idle.connection.shutdown()
        assert idle.transport.closed

    on_the_wire(main)


def test_a_task_that_ends_without_an_answer_ends_the_connection():
    async def main(wire):
        wire.application.may_answer.clear()
        await wire.send(GOOD)
        (task,) = wire.state.tasks
        task.cancel()
        await wire.settled()
        assert task.cancelled()
        assert wire.transport.closed
        assert wire.said == b""

    on_the_wire(main)
