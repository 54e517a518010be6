from __future__ import annotations

import asyncio

import numpy as np

from infinity_emb.errors import BackendError
from infinity_emb.models.features import Features
from infinity_emb.scheduler.request import Request
from infinity_emb.scheduler.settle import fail, settle
from infinity_emb.types import Priority


def request_on(loop):
    return Request([Features(np.array([1]))], loop.create_future(), loop, Priority.INTERACTIVE)


def test_a_batch_of_requests_is_one_call_into_their_loop(monkeypatch):
    async def main():
        loop = asyncio.get_running_loop()
        calls = []
        real = loop.call_soon_threadsafe
        monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *call: calls.append(call) or real(*call))
        requests = [request_on(loop) for _ in range(50)]
        await asyncio.to_thread(settle, requests)
        settled = len([call for call in calls if call[1:] == (requests,)])
        await asyncio.gather(*(request.future for request in requests))
        return settled

    assert asyncio.run(main()) == 1


def test_a_caller_that_is_gone_is_not_answered():
    async def main():
        request, refused = (request_on(asyncio.get_running_loop()) for _ in range(2))
        request.future.cancel()
        refused.future.cancel()
        settle([request])
        fail(refused, BackendError("no"))
        await asyncio.sleep(0)
        return request.future.cancelled() and refused.future.cancelled()

    assert asyncio.run(main())


def test_a_loop_that_is_closed_is_left_alone():
    loop = asyncio.new_event_loop()
    request = request_on(loop)
    loop.close()
    settle([request])
    fail(request, BackendError("no"))
    assert not request.future.done()
