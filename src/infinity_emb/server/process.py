"""A server in its process: uvicorn on every socket, models loading beside it, an orderly end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from infinity_emb.config.environment import environ
from infinity_emb.metrics import HttpMetrics
from infinity_emb.server.app import Application, access_of, model_gauges, model_measures
from infinity_emb.server.aside import aside
from infinity_emb.server.connection import Connection
from infinity_emb.server.lifecycle import Lifecycle, Models
from infinity_emb.server.loading import load
from infinity_emb.server.metrics_push import push_of
from infinity_emb.server.settings import HttpSettings
from infinity_emb.server.tracing import tracing_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.config.server_args import ServerArgs
    from infinity_emb.server.launch import OnReady
    from infinity_emb.server.listening import Bound
    from infinity_emb.server.loading import Loaded

logger = logging.getLogger("infinity_emb")

_CLOSE_S = 2  # for writing answers that are already made
_TELL_S = 3  # for a collector that is slow or away
# A request makes some dozens of objects and no cycles: with Python's own 700 the collector would look every few
# requests at those under way, and find nothing.
_COLLECT_AFTER_OBJECTS = 10_000


class ServerProcess:
    """One run from bound sockets to exit code.

    Args:
        engine_args_list: One entry a model.
        server_args: Options of the server.
        sockets: Bound and listening.
        on_ready: See `run`.
        begun: Loading that has begun already; None begins it when serving.
    """

    def __init__(
        self,
        engine_args_list: Sequence[EngineArgs],
        server_args: ServerArgs,
        sockets: Sequence[Bound],
        on_ready: OnReady | None,
        begun: Future[Loaded] | None = None,
    ) -> None:
        self._begun = begun
        self._engine_args_list = engine_args_list
        self._server_args = server_args
        self._on_ready = on_ready
        names = [args.served_model_name for args in engine_args_list]
        self._lifecycle = Lifecycle(names)
        metrics = HttpMetrics()
        everything = Models(self._lifecycle)
        metrics.watch_models(lambda: model_gauges(everything), lambda: model_measures(everything))
        settings = HttpSettings.from_server_args(server_args)
        access = access_of(settings)
        self._tracing = tracing_of(environ(), asked=server_args.otel)
        scheme = "https" if server_args.ssl_certfile else "http"
        self._push = push_of(environ(), metrics.collect, asked=server_args.otel, scheme=scheme)
        self._applications: list[Application] = []
        self._servers: list[tuple[uvicorn.Server, Bound]] = []
        for bound in sockets:
            only = None if bound.model_index is None else names[bound.model_index]
            application = Application(Models(self._lifecycle, only), settings, metrics, access, self._tracing)
            self._applications.append(application)
            self._servers.append((uvicorn.Server(_uvicorn_config(application, server_args)), bound))
        self._stop = asyncio.Event()
        self._signals = 0

    async def serve(self) -> int:
        """Serve until a signal or a load error.

        Raises:
            InfinityError: A model cannot be brought up.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._on_signal, number)
        for server, bound in self._servers:
            await _start(server, bound)
        loops = [asyncio.create_task(server.main_loop()) for server, _ in self._servers]
        stopped = asyncio.create_task(self._stop.wait())
        loading = asyncio.create_task(self._load())
        if self._push is not None:
            self._push.start()
        await asyncio.wait({stopped, loading}, return_when=asyncio.FIRST_COMPLETED)
        if not loading.done() or loading.exception() is None:
            await self._stop.wait()
            await self._drain()
        await self._close(loops)
        await self._tell_the_rest()
        stopped.cancel()
        if loading.done():
            loading.result()  # raises what loading raised
        else:
            loading.cancel()
        if self._lifecycle.array is not None:
            await self._lifecycle.array.astop()
        return 0

    async def _load(self) -> None:
        """Load, start, and tell; a failure shows in `/startupz` until the process ends."""
        try:
            loaded = await (load(self._engine_args_list) if self._begun is None else asyncio.wrap_future(self._begun))
        except Exception as error:
            self._lifecycle.fail(error)
            raise
        if self._stop.is_set():
            await loaded.array.astop()
            return
        if not gc.isenabled():  # see `launch`
            gc.freeze()  # what start-up made stays; the collector need not look at it again
            gc.set_threshold(_COLLECT_AFTER_OBJECTS, *gc.get_threshold()[1:])
            gc.enable()
        self._lifecycle.open(loaded.array, loaded.failures)
        if self._on_ready is not None:
            self._on_ready([engine.card for engine in loaded.array])

    def _on_signal(self, number: int) -> None:
        self._signals += 1
        if self._signals > 1:
            logger.warning("Second signal: leaving now.")
            os._exit(128 + number)
        logger.info("Stopping: finishing what is in flight, up to %g s.", self._server_args.shutdown_grace_s)
        self._lifecycle.drain()
        self._stop.set()

    async def _drain(self) -> None:
        """Finish what is in flight within the grace period, refuse the rest."""
        grace_s = self._server_args.shutdown_grace_s
        await asyncio.gather(*(application.serving.in_flight.finish(grace_s) for application in self._applications))

    async def _tell_the_rest(self) -> None:
        """Send the last spans and metrics, unless the collector takes too long."""
        ends = [] if self._tracing is None else [aside(self._tracing.close, "tracing")]
        ends += [] if self._push is None else [self._push.stop()]
        try:
            await asyncio.wait_for(asyncio.gather(*ends), _TELL_S)
        except asyncio.TimeoutError:
            logger.warning("The last traces or metrics were not taken by the collector within %g s.", _TELL_S)

    async def _close(self, loops: Sequence[asyncio.Task[None]]) -> None:
        for server, _ in self._servers:
            server.should_exit = True
        await asyncio.gather(*loops)
        await asyncio.gather(*(server.shutdown(sockets=[bound.socket]) for server, bound in self._servers))
        for _, bound in self._servers:
            bound.release()


async def _start(server: uvicorn.Server, bound: Bound) -> None:
    """Do what uvicorn's own `serve` does before its main loop, without its signal handling."""
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[bound.socket])


def _uvicorn_config(application: Application, args: ServerArgs) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        http=partial(Connection, application),  # type: ignore[arg-type]  # called as a class would be
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_CLOSE_S,
        ssl_certfile=args.ssl_certfile,
        ssl_keyfile=args.ssl_keyfile,
    )
