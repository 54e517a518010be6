"""Which signals OpenTelemetry is given, as its own variables say; the same rules for traces and metrics."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from infinity_emb import extras
from infinity_emb.errors import ConfigurationError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")

logger = logging.getLogger("infinity_emb")

SERVICE = "infinity_emb"
_PURPOSE = "--otel"
_EXPORTERS = ("otlp", "console", "none")
_QUIET_S = 60


@dataclass(frozen=True)
class Signal:
    """One of the two.

    Attributes:
        name: For people.
        exporter: Variable that names the exporter.
        endpoint: Variable with the address of a collector for this signal alone.
    """

    name: str
    exporter: str
    endpoint: str


TRACES = Signal("traces", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
METRICS = Signal("metrics", "OTEL_METRICS_EXPORTER", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")


class OncePerMinute(logging.Filter):
    """Lets one message a minute through, so that a collector that is away does not fill the log."""

    def __init__(self) -> None:
        super().__init__()
        self._next_s = 0.0

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - the signature of logging
        """Whether it may be written."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + _QUIET_S
        return True


def needed(module: str) -> Any:
    """A module of OpenTelemetry.

    Raises:
        MissingExtraError: It is not installed.
    """
    return extras.require(module, "otel", _PURPOSE)


def calmed(module: Any) -> Any:
    """An exporter's module, whose complaints are from now on written once a minute at most."""
    complaints = logging.getLogger(module.__name__)
    if not any(isinstance(one, OncePerMinute) for one in complaints.filters):
        complaints.addFilter(OncePerMinute())
    return module


def resource_of(variables: Mapping[str, str]) -> Any:
    """Of whom the signals are said."""
    service = variables.get("OTEL_SERVICE_NAME") or SERVICE
    return needed("opentelemetry.sdk.resources").Resource.create({"service.name": service})


def signal_of(signal: Signal, variables: Mapping[str, str], build: Callable[[str], T], *, asked: bool) -> T | None:
    """What `build` makes for the exporter, "otlp" or "console"; None if nobody wants the signal.

    Args:
        signal: Which one.
        variables: The environment.
        build: Makes it.
        asked: `--otel` was given.

    Raises:
        MissingExtraError: `--otel` was given and OpenTelemetry is not installed.
        ConfigurationError: `--otel` was given and a variable has no value that is understood. If only a variable asks
            for the signal, which may be meant for others, either is a warning.
    """
    exporter = variables.get(signal.exporter, "").strip().lower()
    if variables.get("OTEL_SDK_DISABLED", "").strip().lower() == "true" or exporter == "none":
        return None
    wanted_by = ("OTEL_EXPORTER_OTLP_ENDPOINT", signal.endpoint, signal.exporter)
    named = next((name for name in wanted_by if variables.get(name)), None)
    if not asked and named is None:
        return None
    try:
        _check(signal, exporter)
        return build(exporter or "otlp")
    except (MissingExtraError, ConfigurationError) as error:
        if asked:
            raise
        logger.warning("%s is set, but there will be no %s: %s", named, signal.name, error)
        return None


def _check(signal: Signal, exporter: str) -> None:
    if exporter and exporter not in _EXPORTERS:
        allowed = ", ".join(_EXPORTERS)
        raise ConfigurationError(
            f"{signal.exporter} is {exporter!r}; set it to one of {allowed}.", param=signal.exporter
        )
