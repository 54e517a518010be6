"""From method and path to a route: a dictionary for fixed paths, a few patterns for paths that hold a model id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infinity_emb.server.errors import MethodNotAllowedError, RouteNotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from infinity_emb.server.request import Request
    from infinity_emb.server.response import Response
    from infinity_emb.server.serving import Serving

    Handler = Callable[[Request, Serving], Awaitable[Response]]


@dataclass(frozen=True)
class Route:
    """One operation.

    Attributes:
        method: `GET` or `POST`; `HEAD` is answered where `GET` is.
        path: Fixed, or with one `{name}` that stands for one or more path segments.
        handler: Coroutine function that answers.
        summary: One line for people.
        body: Type of the JSON body, for the OpenAPI document.
        answer: Name of the answer's schema in the OpenAPI document.
        tag: Heading in the documentation.
        dialect: `tei` where errors are written TEI's way.
        access: Empty needs a key, `always` never does, `operator` an operator's, a
            group's name does unless the settings leave that group open.
        native: Path of Infinity's own API, where rerank documents are plain strings.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    body: type[Any] | None = None
    answer: str = ""
    tag: str = "native"
    dialect: str = ""
    access: str = ""
    native: bool = False


class Router:
    """Finds routes.

    Args:
        routes: All of them; of two with the same method and path the first one counts.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._patterns: list[tuple[str, str, str, Route]] = []
        for route in routes:
            before, brace, rest = route.path.partition("{")
            if brace:
                name, _, after = rest.partition("}")
                self._patterns.append((before, name, after, route))
            else:
                self._fixed.setdefault(route.path, {}).setdefault(route.method, route)

    def match(self, request: Request) -> Route:
        """The route of a request; path parameters go into `request.params`.

        Raises:
            RouteNotFoundError: Nothing is served there.
            MethodNotAllowedError: Not for this method.
        """
        method = "GET" if request.method == "HEAD" else request.method
        methods = self._fixed.get(request.path)
        if methods is not None:
            route = methods.get(method)
            if route is not None:
                return route
        allowed = set(methods or ())
        for before, name, after, route in self._patterns:
            value = _between(request.path, before, after)
            if value:
                allowed.add(route.method)
                if route.method == method:
                    request.params = {name: value}
                    return route
        if not allowed:
            raise RouteNotFoundError(
                f"Nothing is served at {request.path[:200]!r}; GET /docs lists every path of this server."
            )
        if "GET" in allowed:
            allowed.add("HEAD")
        raise MethodNotAllowedError(
            f"{request.path[:200]!r} does not answer {request.method[:20]!r}.", allowed=tuple(sorted(allowed))
        )

    def redirect_target(self, request: Request) -> str | None:
        """The path without trailing slashes if that one is served and this one is not."""
        path = request.path
        if len(path) < 2 or not path.endswith("/") or path in self._fixed:
            return None
        shorter = path.rstrip("/")
        return shorter if shorter in self._fixed else None


def _between(path: str, before: str, after: str) -> str:
    """What stands between, or nothing."""
    if len(path) > len(before) + len(after) and path.startswith(before) and path.endswith(after):
        return path[len(before) : len(path) - len(after)]
    return ""
