"""The log's two formats."""

from __future__ import annotations

import io
import json
import logging

import pytest

from infinity_emb.config.choices import LogFormat, LogLevel
from infinity_emb.config.log import TRACE, configure_logging, logger


@pytest.fixture
def stream():
    before = [
        (log, log.handlers[:], log.level, log.propagate) for log in map(logging.getLogger, ("infinity_emb", "uvicorn"))
    ]
    yield io.StringIO()
    for log, channels, level, propagate in before:
        log.handlers[:] = channels
        log.setLevel(level)
        log.propagate = propagate


def test_text_lines_hold_level_and_message(stream):
    configure_logging(LogLevel.INFO, LogFormat.TEXT, stream)
    logger.warning("careful with %s", "this")
    logger.debug("hidden")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("WARNING  careful with this")


def test_json_lines_hold_what_was_passed_as_extra(stream):
    configure_logging(LogLevel.INFO, LogFormat.JSON, stream)
    logger.error("failed", exc_info=ValueError("broken"), extra={"request_id": "r1", "items": 3})
    line = json.loads(stream.getvalue())
    assert (line["level"], line["message"], line["request_id"], line["items"]) == ("error", "failed", "r1", 3)
    assert "ValueError: broken" in line["exception"]
    assert line["time"].endswith("Z")


def test_trace_is_below_debug(stream):
    configure_logging(LogLevel.DEBUG, LogFormat.TEXT, stream)
    logger.log(TRACE, "hidden")
    configure_logging(LogLevel.TRACE, LogFormat.TEXT, stream)
    logger.log(TRACE, "shown")
    assert TRACE == 5
    assert stream.getvalue().split()[1:] == ["TRACE", "shown"]
