"""Bring up the engines beside the running server, so that the port answers probes from the first moment."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.array import AsyncEngineArray

logger = logging.getLogger("infinity_emb")


async def load(engine_args_list: Sequence[EngineArgs]) -> AsyncEngineArray:
    """Load and start every engine without blocking the event loop.

    The thread is a daemon: a server that is told to stop while a download hangs must not wait for it.

    Raises:
        InfinityError: A model cannot be brought up.
    """
    loop = asyncio.get_running_loop()
    built: asyncio.Future[AsyncEngineArray] = loop.create_future()

    def settle(array: AsyncEngineArray | None, error: BaseException | None) -> None:
        if built.done():
            return
        if array is not None:
            built.set_result(array)
        elif error is not None:
            built.set_exception(error)

    def build() -> None:
        array, error = None, None
        try:
            array = build_array(engine_args_list)
        except BaseException as caught:  # noqa: BLE001 - handed to the task that waits, which raises it
            error = caught
        try:
            loop.call_soon_threadsafe(settle, array, error)
        except RuntimeError:
            logger.debug("The event loop ended before the models were loaded.")

    threading.Thread(target=build, name="infinity-load", daemon=True).start()
    array = await built
    await array.astart()
    return array


def build_array(engine_args_list: Sequence[EngineArgs]) -> AsyncEngineArray:
    """Load the weights of every engine.

    Raises:
        InfinityError: A model cannot be brought up.
    """
    from infinity_emb.engine.array import AsyncEngineArray  # noqa: PLC0415 - loads the numeric libraries

    return AsyncEngineArray.from_args(engine_args_list)
