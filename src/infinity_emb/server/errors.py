"""One table from error class to HTTP status, and the two bodies that carry errors.

The rule of the project for wrong input:

- **422** only when the *form* of the request is wrong: the body is not JSON, a field is missing, of the wrong type or
  outside a fixed range. `detail` is then FastAPI's list of `{loc, msg, type}`, because Infinity's generated client
  parses it; no other status has a list there.
- **400** when the form is right but this server or model cannot do it: unknown model, `dimensions` the model does not
  have, a task it was not made for, a text too long with truncation off.
- **413** body too large, **415** content encoding not supported, **401**, **404**, **405** as usual.
- **429** overloaded and **503** loading, draining or out of memory, both with an integer `Retry-After`; **504** time
  limit passed.
- **500** the model failed or a bug; `x-should-retry: false` when the same request would fail again.

Every body carries the text three times (`error.message`, `message`, `detail`): as each family of clients
reads another one.
TEI's routes answer TEI's own body and statuses (422 for any wrong input, 424 when the model cannot or did not).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import orjson

from infinity_emb import errors
from infinity_emb.server.response import Response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.server.request import Request


class Problem(NamedTuple):
    """One thing wrong with the form of a request.

    Attributes:
        loc: Where: `("body", "input", 3)`.
        msg: What, for a person.
        type: What, for a program.
    """

    loc: tuple[str | int, ...]
    msg: str
    type: str


class SchemaError(errors.InvalidInputError):
    """The form of the request is wrong."""

    def __init__(self, message: str, *, loc: Sequence[str | int] = (), kind: str = "value_error") -> None:
        names = [part for part in loc if isinstance(part, str)]
        super().__init__(message, param=names[0] if names else None)
        self.problem = Problem(("body", *loc), message, kind)


class BodyTooLargeError(errors.InputTooLargeError):
    """The request body has more bytes than allowed."""


class UnsupportedEncodingError(errors.RequestError):
    """The content encoding of the body is not known here."""


class RouteNotFoundError(errors.RequestError):
    """Nothing is served at this path."""


class ModelRouteNotFoundError(errors.ModelNotFoundError):
    """`/models/{id}` names no served model."""


class MethodNotAllowedError(errors.RequestError):
    """The path is served, but not for this method."""

    def __init__(self, message: str, *, allowed: tuple[str, ...]) -> None:
        super().__init__(message)
        self.allowed = allowed


class ForbiddenError(errors.AuthenticationError):
    """The key is right, but not for this."""


class RateLimitedError(errors.OverloadedError):
    """The key was used too often."""


class ClientGoneError(errors.RequestError):
    """The client closed the connection; nobody reads the answer."""


class Fault(NamedTuple):
    """How an error class is answered.

    Attributes:
        status: HTTP status.
        type: OpenAI's `error.type`.
        code: OpenAI's `error.code`, also the label in metrics.
        tei_status: HTTP status on TEI's routes.
        tei_type: TEI's `error_type`.
    """

    status: int
    type: str
    code: str
    tei_status: int
    tei_type: str


_INVALID = "invalid_request_error"
_BUG = Fault(500, "server_error", "internal_error", 500, "Backend")

TABLE: dict[type[BaseException], Fault] = {
    SchemaError: Fault(422, _INVALID, "invalid_body", 422, "Validation"),
    BodyTooLargeError: Fault(413, _INVALID, "body_too_large", 413, "Validation"),
    UnsupportedEncodingError: Fault(415, _INVALID, "unsupported_encoding", 415, "Validation"),
    RouteNotFoundError: Fault(404, _INVALID, "route_not_found", 404, "Validation"),
    ModelRouteNotFoundError: Fault(404, _INVALID, "model_not_found", 404, "Validation"),
    MethodNotAllowedError: Fault(405, _INVALID, "method_not_allowed", 405, "Validation"),
    ClientGoneError: Fault(499, _INVALID, "client_gone", 499, "Validation"),
    ForbiddenError: Fault(403, "permission_error", "not_allowed", 403, "Unauthorized"),
    RateLimitedError: Fault(429, "rate_limit_error", "rate_limited", 429, "Overloaded"),
    errors.DimensionsError: Fault(400, _INVALID, "invalid_dimensions", 422, "Validation"),
    errors.TextRouteError: Fault(422, _INVALID, "text_route_missing", 422, "Validation"),
    errors.MediaError: Fault(400, _INVALID, "invalid_media", 422, "Validation"),
    errors.InvalidInputError: Fault(400, _INVALID, "invalid_value", 422, "Validation"),
    errors.InputTooLargeError: Fault(400, _INVALID, "input_too_large", 422, "Validation"),
    errors.ModelNotFoundError: Fault(400, _INVALID, "model_not_found", 422, "Validation"),
    errors.CapabilityError: Fault(400, _INVALID, "capability_missing", 424, "Backend"),
    errors.AuthenticationError: Fault(401, "authentication_error", "invalid_api_key", 401, "Unauthorized"),
    errors.RequestError: Fault(400, _INVALID, "invalid_request", 422, "Validation"),
    errors.OverloadedError: Fault(429, "rate_limit_error", "overloaded", 429, "Overloaded"),
    errors.NotReadyError: Fault(503, "service_unavailable_error", "not_ready", 503, "Unhealthy"),
    errors.OutOfMemoryError: Fault(503, "service_unavailable_error", "out_of_memory", 503, "Unhealthy"),
    errors.DeadlineExceededError: Fault(504, "timeout_error", "deadline_exceeded", 504, "Overloaded"),
    errors.UnavailableError: Fault(503, "service_unavailable_error", "unavailable", 503, "Unhealthy"),
    errors.BackendError: Fault(500, "server_error", "backend_error", 424, "Backend"),
    errors.MissingExtraError: Fault(400, _INVALID, "missing_extra", 424, "Backend"),
}


def fault_of(error: BaseException) -> Fault:
    """The row of the table for an error: that of its nearest listed class."""
    for kind in type(error).__mro__:
        fault = TABLE.get(kind)
        if fault is not None:
            return fault
    return _BUG


def error_response(error: BaseException, request: Request) -> Response:
    """The answer for an error, in the dialect of the request.

    Errors that are not listed are bugs: their text may hold paths, so only the request id is shown.
    """
    fault = fault_of(error)
    if fault is _BUG:
        message = f"Internal error; the server's log has more under request id {request.request_id}."
    else:
        message = getattr(error, "message", None) or str(error)
    tei = request.dialect == "tei"
    status = fault.tei_status if tei else fault.status
    body: dict[str, object]
    if tei:
        body = {"error": message, "error_type": fault.tei_type}
    else:
        param = getattr(error, "param", None)
        body = {
            "error": {"message": message, "type": fault.type, "param": param, "code": fault.code},
            "message": message,
            "detail": [error.problem._asdict()] if isinstance(error, SchemaError) else _detail(status, message),
        }
    return Response(orjson.dumps(body), status=status, headers=_headers(error, status))


def _detail(status: int, message: str) -> str:
    return "Unauthorized" if status == 401 else message


def _headers(error: BaseException, status: int) -> list[tuple[bytes, bytes]]:
    if isinstance(error, errors.UnavailableError) and status in {429, 503}:
        return [(b"retry-after", str(max(1, error.retry_after_s or 1)).encode())]
    if isinstance(error, MethodNotAllowedError):
        return [(b"allow", ", ".join(error.allowed).encode())]
    if status == 401:
        return [(b"www-authenticate", b"Bearer")]
    if isinstance(error, errors.BackendError) or status == 500:
        return [(b"x-should-retry", b"false")]
    return []
