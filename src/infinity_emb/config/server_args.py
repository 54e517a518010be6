"""Options of the whole server."""

# ruff: noqa: RUF009 - `setting` returns a dataclass field

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from infinity_emb.config.checks import (
    at_least,
    port_number,
    positive,
    readable_file,
    redirect_target,
    url_prefix,
)
from infinity_emb.config.choices import LogFormat, LogLevel, PublicRoute, RerankDocument, TokenIds
from infinity_emb.config.environment import environ
from infinity_emb.config.option import Option, options_of, setting
from infinity_emb.config.sources import settle
from infinity_emb.errors import ConfigurationError

DEFAULT_PORT: Final = 7997

_HTTP, _ACCESS, _LIMITS, _LOG = "HTTP", "Access", "Limits", "Log and start"


@dataclass(frozen=True)
class Listener:
    """A TCP port and what answers there.

    Attributes:
        port: Port number; 0 lets the system choose.
        model_index: Position of the only model that answers there; None is all of them.
    """

    port: int
    model_index: int | None = None


@dataclass(frozen=True, kw_only=True)
class ServerArgs:
    """What the server as a whole does. Fields are the options of `infinity_emb v2` that are not per model.

    A field that is not given takes the value of its `INFINITY_*` variable, else its default.

    Raises:
        ConfigurationError: A value is wrong, or two of them exclude each other.
    """

    per_model: ClassVar[bool] = False

    host: str = setting("0.0.0.0", Option(help="Address to listen on; 127.0.0.1 for this machine only.", section=_HTTP))  # noqa: S104 - the documented default
    ports: tuple[int, ...] = setting(
        (DEFAULT_PORT,),
        Option(
            flag="port",
            help="Port for all models. Given once for each model, every model answers alone on its own; "
            "with one more in front, that one serves all.",
            section=_HTTP,
            check=port_number,
        ),
    )
    uds: str | None = setting(None, Option(help="Listen on this unix socket instead of a port.", section=_HTTP))
    url_prefix: str = setting(
        "", Option(help="Path before the native routes, such as /v1; empty for none.", section=_HTTP, check=url_prefix)
    )
    redirect_slash: str = setting(
        "/docs", Option(help="Where GET / leads; empty switches it off.", section=_HTTP, check=redirect_target)
    )
    proxy_root_path: str = setting(
        "", Option(help="Path under which a reverse proxy shows the server; it only changes links.", section=_HTTP)
    )
    permissive_cors: bool = setting(False, Option(help="Allow browsers of any origin.", section=_HTTP))
    rerank_document: RerankDocument = setting(
        RerankDocument.AUTO,
        Option(
            help="Shape of the document in rerank results; auto is a string on the native route and an object on "
            "/v1 and /v2.",
            section=_HTTP,
        ),
    )
    token_ids: TokenIds = setting(
        TokenIds.CL100K,
        Option(
            help="How token ids in a request are read: as OpenAI's cl100k, which clients send, or as the model's own.",
            section=_HTTP,
        ),
    )
    ssl_certfile: str | None = setting(
        None, Option(help="Certificate (PEM) to serve HTTPS.", section=_HTTP, check=readable_file)
    )
    ssl_keyfile: str | None = setting(
        None, Option(help="Private key (PEM) of the certificate.", section=_HTTP, check=readable_file)
    )
    api_keys: tuple[str, ...] = setting(
        (),
        Option(
            flag="api-key",
            help="Key that requests must carry; repeat it for several. None or an empty one: no key is needed.",
            section=_ACCESS,
            secret=True,
        ),
    )
    api_key_file: str | None = setting(
        None,
        Option(
            help="File with one key a line, each with what it may do (docs/security.md); read again when it changes.",
            section=_ACCESS,
            check=readable_file,
        ),
    )
    operator_keys: tuple[str, ...] = setting(
        (),
        Option(
            flag="operator-key",
            help="Key for operators, which opens /debug too; repeat it for several. Without one /debug is off.",
            section=_ACCESS,
            secret=True,
        ),
    )
    public_routes: tuple[PublicRoute, ...] = setting(
        (PublicRoute.DOCS, PublicRoute.METRICS),
        Option(
            help="What may be read without the key, with commas: docs, metrics, models, info; empty for nothing.",
            section=_ACCESS,
            comma=True,
        ),
    )
    request_timeout_s: float | None = setting(
        None, Option(help="Give up a request after so many seconds; auto is no limit.", section=_LIMITS, check=positive)
    )
    shutdown_grace_s: float = setting(
        30.0, Option(help="Seconds for requests in flight when the server stops.", section=_LIMITS, check=at_least(0))
    )
    max_body_bytes: int = setting(268_435_456, Option(help="Largest request body.", section=_LIMITS, check=at_least(1)))
    preload_only: bool = setting(
        False, Option(help="Fetch, load and warm up the models, then exit with 0.", section=_LOG)
    )
    log_level: LogLevel = setting(LogLevel.INFO, Option(help="How much is logged.", section=_LOG))
    access_log: bool = setting(
        False, Option(help="Write a line for each request: what was called and how it ended.", section=_LOG)
    )
    otel: bool = setting(
        False,
        Option(
            help="Send OpenTelemetry traces and metrics to where the OTEL_* variables say; they ask for it too.",
            section=_LOG,
        ),
    )
    log_format: LogFormat = setting(LogFormat.TEXT, Option(help="Lines to read, or JSON lines.", section=_LOG))

    def __post_init__(self) -> None:
        """Fill in, convert and check every field, then the pairs."""
        settle(self, environ())
        object.__setattr__(self, "url_prefix", self.url_prefix.rstrip("/"))
        object.__setattr__(self, "api_keys", tuple(key for key in self.api_keys if key))
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ConfigurationError("--ssl-keyfile needs --ssl-certfile beside it", param="ssl-keyfile")
        if self.uds and len(self.ports) > 1:
            raise ConfigurationError("--uds and several --port exclude each other; give one of them", param="uds")
        fixed = [port for port in self.ports if port]
        if len(set(fixed)) != len(fixed):
            raise ConfigurationError(f"--port names one port twice: {', '.join(map(str, fixed))}", param="port")

    @property
    def port(self) -> int:
        """The first port."""
        return self.ports[0]

    def listeners(self, model_count: int) -> tuple[Listener, ...]:
        """Which port answers for which model.

        One port is for all models. As many ports as models (two or more): each model alone on its own.
        One port more than models: the first is for all, the others one each.

        Raises:
            ConfigurationError: Another number of ports.
        """
        if len(self.ports) == 1:
            return (Listener(self.port),)
        own = self.ports[len(self.ports) - model_count :]
        if len(self.ports) not in {model_count, model_count + 1}:
            raise ConfigurationError(
                f"--port is given {len(self.ports)} times for {model_count} model(s). Give it once, "
                f"once for each model, or once more than there are models (the first then serves all).",
                param="port",
            )
        shared = tuple(Listener(port) for port in self.ports[: len(self.ports) - model_count])
        return shared + tuple(Listener(port, index) for index, port in enumerate(own))


SERVER_OPTIONS = options_of(ServerArgs)
