"""`create_server`: the server as a FastAPI application, for code that mounts or tests it."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING, Any

from infinity_emb.extras import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from infinity_emb.config.engine_args import EngineArgs


def create_server(  # noqa: PLR0913 - the signature of Infinity
    *,
    engine_args_list: Sequence[EngineArgs],
    url_prefix: str = "",
    doc_extra: dict[str, Any] | None = None,
    redirect_slash: str = "/docs",
    preload_only: bool = False,
    permissive_cors: bool = False,
    api_key: str = "",
    proxy_root_path: str = "",
) -> Any:
    """A FastAPI application whose lifespan loads, starts and stops the engines.

    Args:
        engine_args_list: One entry a model.
        url_prefix: Path before the native routes.
        doc_extra: Keyword arguments for FastAPI, such as `title`.
        redirect_slash: Where `GET /` leads; empty switches it off.
        preload_only: Interrupt the process once everything is loaded.
        permissive_cors: Allow browsers of any origin.
        api_key: Key that requests must carry; empty for none.
        proxy_root_path: Path under which a proxy shows the server.

    Returns:
        `fastapi.FastAPI`.

    Raises:
        MissingExtraError: FastAPI is not installed.
    """
    fastapi = require("fastapi", "server", "create_server")
    from infinity_emb.metrics import HttpMetrics  # noqa: PLC0415 - loads the web libraries
    from infinity_emb.server.app import Application, model_gauges, model_measures  # noqa: PLC0415 - as above
    from infinity_emb.server.lifecycle import Lifecycle, Models  # noqa: PLC0415 - as above
    from infinity_emb.server.loading import load  # noqa: PLC0415 - as above
    from infinity_emb.server.openapi import document  # noqa: PLC0415 - as above
    from infinity_emb.server.settings import HttpSettings  # noqa: PLC0415 - as above

    settings = HttpSettings(
        url_prefix=url_prefix.rstrip("/"),
        proxy_root_path=proxy_root_path.rstrip("/"),
        redirect_slash=redirect_slash,
        permissive_cors=permissive_cors,
        api_keys=(api_key,) if api_key else (),
    )
    lifecycle = Lifecycle([args.served_model_name for args in engine_args_list])
    models = Models(lifecycle)
    metrics = HttpMetrics()
    metrics.watch_models(lambda: model_gauges(models), lambda: model_measures(models))
    application = Application(models, settings, metrics)

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        array = await (await load(engine_args_list)).complete()
        lifecycle.open(array)
        if preload_only:
            os.kill(os.getpid(), signal.SIGINT)
        try:
            yield
        finally:
            lifecycle.drain()
            await array.astop()

    app = fastapi.FastAPI(
        **{"title": "infinity_emb", **(doc_extra or {})},
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
    )
    app.openapi = lambda: document(application.serving.routes, settings)
    app.mount("/", application)
    return app
