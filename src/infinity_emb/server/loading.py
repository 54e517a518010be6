"""Bring up the engines beside the running server, so that the port answers probes from the first moment."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.array import AsyncEngineArray
    from infinity_emb.errors import InfinityError

logger = logging.getLogger("infinity_emb")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What came up.

    Attributes:
        array: The engines that run, at least one.
        failures: Why the other models do not, by served name.
    """

    array: AsyncEngineArray
    failures: dict[str, InfinityError] = field(default_factory=dict)

    async def complete(self) -> AsyncEngineArray:
        """The engines, where every model is needed.

        Raises:
            InfinityError: One of them cannot be brought up; the others are stopped.
        """
        for error in self.failures.values():
            await self.array.astop()
            raise error
        return self.array


def begin(engine_args_list: Sequence[EngineArgs]) -> Future[Loaded]:
    """Load and start every engine in a thread.

    The thread is a daemon: a server that is told to stop while a download hangs must not wait for it.
    """
    built: Future[Loaded] = Future()
    built.set_running_or_notify_cancel()

    def build() -> None:
        try:
            built.set_result(_build(engine_args_list))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, who raises it
            built.set_exception(error)

    threading.Thread(target=build, name="infinity-load", daemon=True).start()
    return built


async def load(engine_args_list: Sequence[EngineArgs]) -> Loaded:
    """Load and start every engine without blocking the event loop.

    Raises:
        InfinityError: None of the models can be brought up.
    """
    return await asyncio.wrap_future(begin(engine_args_list))


def _build(engine_args_list: Sequence[EngineArgs]) -> Loaded:
    from infinity_emb.engine.array import AsyncEngineArray  # noqa: PLC0415 - loads the numeric libraries

    array, failures = AsyncEngineArray.start_each(engine_args_list)
    for name, error in failures.items():
        logger.critical("The model %r cannot be served, the others can: %s", name, error)
    return Loaded(array, failures)
