"""Words that an option of the server may take."""

from __future__ import annotations

import enum


class _Choice(str, enum.Enum):
    """A string enumeration whose members print as their value."""

    def __str__(self) -> str:
        return str(self.value)


class LogLevel(_Choice):
    """How much is logged (`--log-level`)."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    DEBUG = "debug"
    TRACE = "trace"


class LogFormat(_Choice):
    """Shape of a log line (`--log-format`)."""

    TEXT = "text"
    JSON = "json"


class PublicRoute(_Choice):
    """What may be read without the API key (`--public-routes`)."""

    DOCS = "docs"
    METRICS = "metrics"
    MODELS = "models"
    INFO = "info"


class RerankDocument(_Choice):
    """Shape of `document` in a rerank result (`--rerank-document`)."""

    AUTO = "auto"
    STRING = "string"
    OBJECT = "object"


class TokenIds(_Choice):
    """Whose vocabulary the token ids in a request belong to (`--token-ids`)."""

    CL100K = "cl100k"
    MODEL = "model"
