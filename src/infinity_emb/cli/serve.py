"""Start the server with what flags, variables and settings file say."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import click

from infinity_emb.cli.banner import facts, render
from infinity_emb.config.choices import LogFormat
from infinity_emb.config.environment import environ
from infinity_emb.config.log import configure_logging, logger
from infinity_emb.config.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infinity_emb.config.server_args import ServerArgs
    from infinity_emb.config.sources import Given
    from infinity_emb.types import ModelCard

Notice: TypeAlias = "tuple[int, str]"
"""A level of the `logging` module and what to log."""


def serve(flags: Mapping[str, Given], notices: Sequence[Notice] = ()) -> int:
    """Serve until the process is told to stop; returns the exit code.

    Args:
        flags: What the command line says.
        notices: What to log first.

    Raises:
        InfinityError: Settings are wrong, a model cannot be loaded, or the port is in use.
    """
    resolved = resolve(flags, environ())
    server_args = resolved.server_args
    configure_logging(server_args.log_level, server_args.log_format)
    for level, text in notices:
        logger.log(level, text)
    for warning in resolved.warnings:
        logger.warning(warning)
    for line in resolved.report:
        logger.debug(line)

    from infinity_emb.engine.tuning.kept import with_choice  # noqa: PLC0415 - loads the web libraries, as the next
    from infinity_emb.server import run  # noqa: PLC0415 - as above

    chosen = [with_choice(args) for args in resolved.engine_args]
    tuned = {args.served_model_name: str(path) for args, path in chosen if path is not None}

    def on_ready(cards: Sequence[ModelCard]) -> None:
        urls = urls_of(server_args, len(cards))
        if server_args.log_format is LogFormat.JSON:
            logger.info("ready", extra={"urls": urls, "models": [facts(card) for card in cards], "tuned": tuned})
        else:
            click.echo(render(cards, urls, tuned))

    return run([args for args, _ in chosen], server_args, on_ready=on_ready)


def urls_of(server_args: ServerArgs, model_count: int) -> list[str]:
    """Addresses to open on this machine; the first one serves most."""
    if server_args.uds:
        return [f"unix:{server_args.uds}"]
    scheme = "https" if server_args.ssl_certfile else "http"
    host = "localhost" if server_args.host in {"0.0.0.0", "::", ""} else server_args.host  # noqa: S104 - compared only
    if ":" in host:
        host = f"[{host}]"
    return [f"{scheme}://{host}:{listener.port}" for listener in server_args.listeners(model_count)]
