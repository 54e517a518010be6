"""Clients of every kind, from good to hostile, that check what they get."""

from __future__ import annotations

import asyncio
import base64
import random
import time
from typing import TYPE_CHECKING, Any

import faults
import httpx
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ledger import Ledger

TOLERANCE = 1e-5
# What may happen to a request that is itself in order: computed, refused because of too much work, or because the
# worker was just killed.
ORDERLY = {200, 429, 503}
GARBAGE = (
    b"", b"{", b"[]", b"null", b'{"input": 5}', b'{"input": {"a": 1}}', b'{"input": []}', b'{"input": [null]}',
    b'{"input": [[-1]]}', b"\xff\xfe\x00", b'{"input": "\xff"}', b"[" * 50_000, b'{"input":' + b'{"a":' * 5_000,
    b'{"input": "x", "encoding_format": "md5"}', b'{"input": "x", "dimensions": -1}',
)  # fmt: skip
RAW = (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"\x00" * 100, b"POST / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\nA" * 9)


def body_of(texts: list[str]) -> dict[str, Any]:
    return {"input": texts, "encoding_format": "base64"}


def vectors_of(answer: httpx.Response) -> np.ndarray:
    return np.stack([np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in answer.json()["data"]])


class Traffic:
    """One seed, many clients."""

    def __init__(self, url: str, ledger: Ledger, right: dict[str, np.ndarray], seed: int) -> None:
        self.url = url
        self._ledger = ledger
        self._right = right
        self._texts = list(right)
        self._chance = random.Random(seed)
        self._kinds: list[tuple[int, Callable[[httpx.AsyncClient], Awaitable[None]]]] = [
            (60, self.good), (6, self.poisoned), (4, self.slow), (4, self.too_large_batch), (2, self.balloon),
            (8, self.leaving), (8, self.garbage), (3, self.raw_garbage), (3, self.in_a_hurry), (2, self.burst),
            (4, self.curious), (1, self.huge),
        ]  # fmt: skip

    async def run(self, clients: int, duration_s: float) -> None:
        """Keep so many clients busy for so long."""
        until_s = time.monotonic() + duration_s
        limits = httpx.Limits(max_connections=200, max_keepalive_connections=clients)
        async with httpx.AsyncClient(base_url=self.url, timeout=60, limits=limits) as client:
            await asyncio.gather(*(kind(client) for _, kind in self._kinds))
            await asyncio.gather(*(self._busy(client, until_s) for _ in range(clients)))

    async def _busy(self, client: httpx.AsyncClient, until_s: float) -> None:
        weights, kinds = zip(*self._kinds, strict=True)
        while time.monotonic() < until_s:
            await self._chance.choices(kinds, weights)[0](client)

    def some(self, most: int) -> list[str]:
        return self._chance.choices(self._texts, k=self._chance.randint(1, most))

    async def send(self, client: httpx.AsyncClient, kind: str, allowed: set[int], **rest: Any) -> httpx.Response | None:
        """One request, one line in the ledger."""
        self._ledger.sent += 1
        started_s = time.monotonic()
        try:
            answer = await client.post("/v1/embeddings", **rest)
        except httpx.HTTPError as error:
            self._ledger.answered(kind, type(error).__name__, time.monotonic() - started_s, set(allowed))
            return None
        self._ledger.answered(kind, answer.status_code, time.monotonic() - started_s, set(allowed), answer.text)
        if answer.status_code in {429, 503} and int(answer.headers.get("retry-after", 0)) < 1:
            self._ledger.fault(f"{kind}: {answer.status_code} without Retry-After")
        if answer.status_code >= 400 and not answer.json()["error"]["message"]:
            self._ledger.fault(f"{kind}: {answer.status_code} without a message")
        if answer.status_code == 503:
            await asyncio.sleep(0.3)  # a client with manners, though an impatient one
        if "Traceback" in answer.text or "/site-packages/" in answer.text:
            self._ledger.fault(f"{kind}: the inside shows in {answer.text[:300]}")
        return answer

    def check(self, kind: str, texts: list[str], answer: httpx.Response | None) -> None:
        """Every vector is that of its own text."""
        if answer is None or answer.status_code != 200:
            return
        vectors = vectors_of(answer)
        wanted = np.stack([self._right.get(text, vectors[i]) for i, text in enumerate(texts)])
        if vectors.shape != wanted.shape or not np.isfinite(vectors).all():
            self._ledger.fault(f"{kind}: shape {vectors.shape} or numbers are wrong")
        elif (worst := float(np.abs(vectors - wanted).max())) > TOLERANCE:
            self._ledger.fault(f"{kind}: a vector is off by {worst}")

    async def good(self, client: httpx.AsyncClient) -> None:
        texts = self.some(16)
        self.check("good", texts, await self.send(client, "good", ORDERLY, json=body_of(texts)))

    async def poisoned(self, client: httpx.AsyncClient) -> None:
        """Fails alone, and names the guilty item."""
        texts = self.some(4)
        place = self._chance.randrange(len(texts))
        texts[place] = f"this one goes {self._chance.choice([faults.RAISE, faults.NAN])}"
        answer = await self.send(client, "poisoned", {500, 429, 503}, json=body_of(texts))
        if (
            answer is not None
            and answer.status_code == 500
            and f"item {place}" not in answer.json()["error"]["message"]
        ):
            self._ledger.fault(f"poisoned: item {place} is not named in {answer.text[:300]}")

    async def slow(self, client: httpx.AsyncClient) -> None:
        texts = [f"a {faults.SLEEP} text", *self.some(4)]
        self.check("slow", texts, await self.send(client, "slow", ORDERLY, json=body_of(texts)))

    async def too_large_batch(self, client: httpx.AsyncClient) -> None:
        """Out of memory as one batch, fine in halves."""
        texts = [f"an {faults.MEMORY} comes", *self.some(30)]
        self.check("memory", texts, await self.send(client, "memory", ORDERLY, json=body_of(texts)))

    async def balloon(self, client: httpx.AsyncClient) -> None:
        texts = [f"a {faults.BALLOON} rises", *self.some(2)]
        self.check("balloon", texts, await self.send(client, "balloon", ORDERLY, json=body_of(texts)))

    async def leaving(self, _: httpx.AsyncClient) -> None:
        """Hangs up at a random moment: while sending, waiting or reading."""
        self._ledger.sent += 1
        try:
            async with httpx.AsyncClient(base_url=self.url) as own:
                post = own.post("/v1/embeddings", json=body_of(self.some(64)))
                await asyncio.wait_for(post, self._chance.uniform(0.001, 0.15))
        except (asyncio.TimeoutError, httpx.HTTPError):
            pass
        self._ledger.outcomes["leaving", "left"] += 1

    async def garbage(self, client: httpx.AsyncClient) -> None:
        content = self._chance.choice(GARBAGE)
        headers = {"content-type": "application/json"}
        await self.send(client, "garbage", {400, 422, 503}, content=content, headers=headers)

    async def raw_garbage(self, _: httpx.AsyncClient) -> None:
        """Bytes that are no HTTP: answered with an error or hung up on."""
        self._ledger.sent += 1
        url = httpx.URL(self.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        try:
            writer.write(self._chance.choice(RAW))
            writer.write_eof()
            said = await asyncio.wait_for(reader.read(), 25)
            self._ledger.outcomes["raw", said[9:12].decode("latin-1") or "closed"] += 1
            if said and not said.startswith(b"HTTP/1.1 4"):
                self._ledger.fault(f"raw: garbage was answered with {said[:100]!r}")
        except ConnectionError:
            self._ledger.outcomes["raw", "closed"] += 1
        except asyncio.TimeoutError:
            self._ledger.outcomes["raw", "nothing"] += 1
            self._ledger.fault("raw: the connection stayed open for 25 s")
        finally:
            writer.close()

    async def in_a_hurry(self, client: httpx.AsyncClient) -> None:
        texts = self.some(32)
        headers = {"x-request-timeout": f"{self._chance.uniform(0.001, 0.05):.4f}"}
        answer = await self.send(client, "hurry", {*ORDERLY, 504}, json=body_of(texts), headers=headers)
        self.check("hurry", texts, answer)

    async def burst(self, client: httpx.AsyncClient) -> None:
        """More than the waiting line holds."""

        async def one() -> None:
            texts = self.some(64)
            self.check("burst", texts, await self.send(client, "burst", ORDERLY, json=body_of(texts)))

        await asyncio.gather(*(one() for _ in range(24)))

    async def huge(self, client: httpx.AsyncClient) -> None:
        """A body over the limit; the server may hang up while it is still being sent."""
        allowed = {413, "WriteError", "ReadError", "RemoteProtocolError"}
        headers = {"content-type": "application/json"}
        await self.send(client, "huge", allowed, content=b" " * 3_000_000, headers=headers)

    async def curious(self, client: httpx.AsyncClient) -> None:
        """Looks at everything that needs no model; the process is alive whatever happens to the worker."""
        for path in ("/livez", "/metrics", "/models", "/nowhere"):
            self._ledger.sent += 1
            started_s = time.monotonic()
            answer = await client.get(path)
            expected = {404} if path == "/nowhere" else {200}
            self._ledger.answered(
                "curious", answer.status_code, time.monotonic() - started_s, set(expected), answer.text
            )
