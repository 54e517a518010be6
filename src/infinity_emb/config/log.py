"""The log: levels, lines to read, JSON lines."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TYPE_CHECKING, Final

from infinity_emb.config.choices import LogFormat, LogLevel

if TYPE_CHECKING:
    from typing import TextIO

TRACE: Final = 5

logger: Final = logging.getLogger("infinity_emb")

_LEVELS: Final = {
    LogLevel.CRITICAL: logging.CRITICAL,
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
    LogLevel.TRACE: TRACE,
}

# What every record carries; anything else on it was passed as `extra` and belongs into the JSON line.
_STANDARD_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


def level_number(level: LogLevel) -> int:
    """The number that the `logging` module uses."""
    return _LEVELS[level]


class TextFormatter(logging.Formatter):
    """`12:30:59 INFO     message`."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname:8} {message}", "%H:%M:%S", style="{")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, then what was passed as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, object] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _STANDARD_ATTRIBUTES}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def configure_logging(level: LogLevel, line_format: LogFormat, stream: TextIO | None = None) -> None:
    """Send the log of this package and of the web server to `stream` (stderr when None).

    Calling it again replaces what was set up before.
    """
    logging.addLevelName(TRACE, "TRACE")
    channel = logging.StreamHandler(stream or sys.stderr)
    channel.setFormatter(JsonFormatter() if line_format is LogFormat.JSON else TextFormatter())
    for name in ("infinity_emb", "uvicorn"):
        log = logging.getLogger(name)
        log.handlers[:] = [channel]
        log.setLevel(level_number(level))
        log.propagate = False
