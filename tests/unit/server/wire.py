"""A connection without a socket: what is written to it, and what answers it, are at hand."""

from __future__ import annotations

import asyncio

from uvicorn.server import ServerState

from infinity_emb.server.body import read_body
from infinity_emb.server.connection import Connection
from infinity_emb.server.errors import ClientGoneError
from infinity_emb.server.response import Response
from infinity_emb.server.settings import HttpSettings


class FakeTransport:
    """Keeps every write apart."""

    def __init__(self):
        self.writes = []
        self.closed = False
        self.ended = False
        self.reading = True

    def write(self, data):
        self.writes.append(bytes(data))

    def writelines(self, pieces):
        self.writes.append(b"".join(pieces))

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.ended = True

    def pause_reading(self):
        self.reading = False

    def resume_reading(self):
        self.reading = True


class EchoApplication:
    """Answers with the path and the body, when it may."""

    def __init__(self):
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.reads_body = True
        self.seen = []
        self.abandoned = []

    async def serve(self, request, send):
        self.seen.append(request.path)
        if self.reads_body:
            try:
                request.body = await read_body(request, HttpSettings(body_timeout_s=0.05))
            except ClientGoneError:
                return
        request.exchange.watch(lambda: self.abandoned.append(request.path))
        await self.may_answer.wait()
        body = f"{request.path} ".encode() + request.body
        await send(request, Response(body, headers=[(b"content-length", b"%d" % len(body))]))


class Wire:
    """One connection, its transport and its application."""

    def __init__(self):
        self.application = EchoApplication()
        self.transport = FakeTransport()
        self.state = ServerState()
        self.connection = Connection(self.application, self.state)
        self.connection.connection_made(self.transport)

    @property
    def said(self):
        """Everything written so far."""
        return b"".join(self.transport.writes)

    async def send(self, *pieces):
        """Let these bytes come in, one read each, and whatever can run in between."""
        for piece in pieces:
            self.connection.data_received(piece)
            for _ in range(10):
                await asyncio.sleep(0)

    async def settled(self):
        """Until no task answers any more."""
        while self.state.tasks:
            await asyncio.wait(set(self.state.tasks))


def on_the_wire(test):
    """Run a coroutine function that takes a `Wire`."""

    async def main():
        await test(Wire())

    asyncio.run(main())
