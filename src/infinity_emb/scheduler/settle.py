"""Hot path. Answers requests: one call into each event loop per batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

    from infinity_emb.scheduler.request import Request


def settle(requests: Iterable[Request]) -> None:
    """Complete the futures of requests whose results are all there. They must be closed already."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Request]] = {}
    for request in requests:
        if request.loop is None:
            _complete([request])
        else:
            by_loop.setdefault(request.loop, []).append(request)
    for loop, group in by_loop.items():
        _call(loop, _complete, group)


def fail(request: Request, error: Exception) -> None:
    """Answer a request with an error. It must be closed already."""
    if request.loop is None:
        _refuse(request, error)
    else:
        _call(request.loop, _refuse, request, error)


def _complete(requests: list[Request]) -> None:
    for request in requests:
        if not request.future.done():
            request.future.set_result(None)


def _refuse(request: Request, error: Exception) -> None:
    if not request.future.done():
        request.future.set_exception(error)


def _call(loop: asyncio.AbstractEventLoop, *call: object) -> None:
    if loop.is_closed():
        return  # the caller's loop is gone and with it everyone who could read the answer
    try:
        loop.call_soon_threadsafe(*call)  # type: ignore[arg-type]
    except RuntimeError:
        if not loop.is_closed():  # closed between the check and the call
            raise
