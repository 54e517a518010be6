"""The files of one request: in order, all or none, bounded together, and beside the event loop."""

from __future__ import annotations

import asyncio
import base64

import pytest
from stub_network import PICTURE, PUBLIC, RawServer, StubNetwork

from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.engine.media import MediaFetcher, MediaPolicy, MediaRefusedError, Refusal
from infinity_emb.types import MediaUrls
from loopback import LoopbackServer

DATA = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
NAMES = {"picture.test": [PUBLIC], "inside.test": ["10.0.0.1"]}


@pytest.fixture
def numbered_server():
    with LoopbackServer(lambda exchange: exchange.send(200, exchange.path.encode())) as server:
        yield server


def run(fetcher: MediaFetcher, urls: list[str]):
    async def main():
        try:
            return await fetcher.fetch(urls, "image")
        finally:
            fetcher.close()

    return asyncio.run(main())


def test_files_come_in_the_order_of_their_urls(numbered_server):
    stub = StubNetwork(numbered_server.server_address[1], NAMES)
    urls = [f"http://picture.test/{number}" for number in range(30)]
    found = run(MediaFetcher(MediaPolicy(), stub.network), urls)
    assert [media.content for media in found] == [f"/{number}".encode() for number in range(30)]


def test_the_first_bad_one_is_named_and_the_others_are_given_up(numbered_server):
    stub = StubNetwork(numbered_server.server_address[1], NAMES)
    with pytest.raises(MediaRefusedError) as caught:
        run(MediaFetcher(MediaPolicy(), stub.network), [DATA, "http://picture.test/1", "http://inside.test/"])
    assert caught.value.item_index == 2
    assert caught.value.refusal is Refusal.PRIVATE
    assert caught.value.message.startswith("Item 2: ")


def test_the_files_of_a_request_are_bounded_together():
    policy = MediaPolicy(max_request_bytes=3 * len(PICTURE))
    assert len(run(MediaFetcher(policy), [DATA] * 3)) == 3
    with pytest.raises(MediaRefusedError) as caught:
        run(MediaFetcher(policy), [DATA] * 5)
    assert caught.value.refusal is Refusal.TOO_LARGE


def test_the_event_loop_goes_on_while_a_host_is_silent():
    with RawServer(lambda _connection, stop: stop.wait(20)) as server:
        stub = StubNetwork(server.port, NAMES)
        fetcher = MediaFetcher(MediaPolicy(timeout_s=0.5), stub.network)

        async def main() -> int:
            turns = 0
            work = asyncio.ensure_future(fetcher.fetch(["http://picture.test/"], "image"))
            while not work.done():
                turns += 1
                await asyncio.sleep(0.005)
            with pytest.raises(MediaRefusedError) as caught:
                await work
            assert caught.value.refusal is Refusal.TOO_SLOW
            fetcher.close()
            return turns

        assert asyncio.run(main()) > 5


def test_the_policy_follows_the_options():
    args = EngineArgs(media_urls="any", media_hosts=("A.test",), max_media_bytes=5, media_timeout_s=2.0)
    expected = MediaPolicy(MediaUrls.ANY, ("a.test",), max_bytes=5, timeout_s=2.0)
    assert MediaPolicy.from_engine_args(args) == expected
