from __future__ import annotations

import asyncio

import pytest

from infinity_emb.errors import InvalidInputError
from infinity_emb.server.exchange import UNREAD_LIMIT_BYTES
from unit.server.wire import on_the_wire

HEAD = b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%s\r\n"


def test_a_body_in_pieces_is_read_as_one():
    async def main(wire):
        await wire.send(HEAD % (6, b""), b"abc", b"def")
        assert wire.said.endswith(b"\r\n\r\n/a abcdef")

    on_the_wire(main)


def test_a_chunked_body_is_read_as_one_and_its_trailers_are_no_headers():
    async def main(wire):
        head = b"POST /a HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
        await wire.send(head, b"3\r\nabc\r\n", b"3\r\ndef\r\n0\r\nx-late: 1\r\n\r\n")
        assert wire.said.endswith(b"/a abcdef")
        await wire.send(b"GET /b HTTP/1.1\r\n\r\n")
        assert wire.said.endswith(b"/b ")

    on_the_wire(main)


def test_a_client_that_waits_for_leave_to_send_its_body_gets_it():
    async def main(wire):
        await wire.send(HEAD % (3, b"expect: 100-continue\r\n"))
        assert wire.transport.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]
        await wire.send(b"abc")
        assert wire.said.endswith(b"/a abc")

    on_the_wire(main)


def test_a_client_whose_body_is_not_wanted_gets_no_leave_to_send_it():
    async def main(wire):
        wire.application.reads_body = False
        await wire.send(HEAD % (3, b"expect: 100-continue\r\n"))
        assert wire.said.startswith(b"HTTP/1.1 200")

    on_the_wire(main)


def test_a_body_of_which_nothing_comes_is_given_up():
    async def main(wire):
        await wire.send(HEAD % (3, b""))
        (task,) = wire.state.tasks
        with pytest.raises(InvalidInputError, match="did not arrive within"):
            await task
        assert wire.transport.closed

    on_the_wire(main)


def test_a_body_that_nobody_reads_makes_the_client_wait():
    async def main(wire):
        wire.application.reads_body = False
        wire.application.may_answer.clear()
        await wire.send(HEAD % (10 * UNREAD_LIMIT_BYTES, b""), b"x" * (UNREAD_LIMIT_BYTES + 1))
        assert not wire.transport.reading
        wire.application.may_answer.set()
        await wire.settled()
        assert wire.transport.reading

    on_the_wire(main)


def test_leaving_is_told_once_to_whoever_watches():
    async def main(wire):
        wire.application.may_answer.clear()
        await wire.send(HEAD % (1, b"") + b"x")
        wire.connection.connection_lost(None)
        wire.connection.connection_lost(None)
        assert wire.application.abandoned == ["/a"]
        wire.application.may_answer.set()
        await wire.settled()
        assert wire.said == b""

    on_the_wire(main)


def test_whoever_begins_to_watch_after_the_client_left_is_told_at_once():
    async def main(wire):
        wire.application.reads_body = False
        wire.connection.data_received(HEAD % (1, b"") + b"x")
        wire.connection.connection_lost(None)
        await asyncio.sleep(0)
        assert wire.application.abandoned == ["/a"]

    on_the_wire(main)


def test_after_the_body_comes_the_end_of_the_exchange():
    async def main(wire):
        wire.application.reads_body = False
        wire.application.may_answer.clear()
        await wire.send(HEAD % (1, b"") + b"x")
        exchange = wire.connection._current
        assert await exchange.receive() == {"type": "http.request", "body": b"x", "more_body": False}
        waiting = asyncio.ensure_future(exchange.receive())
        await asyncio.sleep(0)
        assert not waiting.done()
        wire.connection.connection_lost(None)
        assert await waiting == {"type": "http.disconnect"}

    on_the_wire(main)
