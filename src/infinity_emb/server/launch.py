"""Run the server: bind, load beside it, drain on a signal."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.config.server_args import ServerArgs
    from infinity_emb.types import ModelCard

    OnReady = Callable[[Sequence[ModelCard]], None]

logger = logging.getLogger("infinity_emb")

# The event loop's thread shares the interpreter with the workers' threads; a short interval keeps it responsive.
_SWITCH_INTERVAL_S = 0.0002
# What a library imports beside its purpose and can do without: OpenVINO's converter is half of its import,
# 55 to 115 ms of processor time. Left out here and not where it is needed, because only in a process of our own nobody
# else may want it.
_LEFT_OUT = ("openvino.tools.ovc",)


def run(engine_args_list: Sequence[EngineArgs], server_args: ServerArgs, on_ready: OnReady | None = None) -> int:
    """Serve until a signal says stop.

    Args:
        engine_args_list: One entry a model.
        server_args: Options of the server.
        on_ready: Called once with the models' cards when the first request could be answered.

    Returns:
        The exit code of the process: 0 after a clean stop.

    Raises:
        ConfigurationError: An address is in use or cannot be bound; nothing has been loaded then.
        InfinityError: A model cannot be brought up.
    """
    if server_args.preload_only:
        asyncio.run(_preload(engine_args_list))
        return 0
    from infinity_emb.server.allocator import bound_arenas  # noqa: PLC0415 - as below
    from infinity_emb.server.listening import bind  # noqa: PLC0415 - the command's help needs no web library
    from infinity_emb.server.loading import begin  # noqa: PLC0415 - as above

    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None: "not installed"
    for name in _LEFT_OUT:
        modules.setdefault(name, None)
    bound_arenas()
    gc.disable()  # start-up makes objects that stay; looking through them again and again costs 5 % of it
    sockets = bind(server_args, len(engine_args_list))
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    begun = begin(engine_args_list)  # compiles the model while this thread imports the web libraries
    from infinity_emb.server.process import ServerProcess  # noqa: PLC0415 - as above

    process = ServerProcess(engine_args_list, server_args, sockets, on_ready, begun)
    return _run_loop(process.serve)


def _run_loop(main: Callable[[], object]) -> int:
    """Run a coroutine function on uvloop where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - optional on Windows

        loop_factory = uvloop.new_event_loop
    except ImportError:
        loop_factory = asyncio.new_event_loop
    loop = loop_factory()
    asyncio.set_event_loop(loop)
    try:
        code = loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        return int(code)
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def _preload(engine_args_list: Sequence[EngineArgs]) -> None:
    from infinity_emb.server.loading import load  # noqa: PLC0415 - loads the numeric libraries

    array = await (await load(engine_args_list)).complete()
    names = ", ".join(engine.card.served_name for engine in array)
    await array.astop()
    logger.info("Loaded and warmed up: %s.", names)
