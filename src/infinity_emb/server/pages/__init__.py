"""The documentation page: static files beside this module, and the OpenAPI document that they read."""

from __future__ import annotations

import functools
from importlib import resources
from typing import TYPE_CHECKING

from infinity_emb.server.errors import RouteNotFoundError
from infinity_emb.server.openapi import document
from infinity_emb.server.response import Response, json_response

if TYPE_CHECKING:
    from infinity_emb.server.request import Request
    from infinity_emb.server.serving import Serving

_TYPES = {"docs.css": b"text/css; charset=utf-8", "docs.js": b"text/javascript; charset=utf-8"}
_HTML = b"text/html; charset=utf-8"
_POLICY = b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'"


async def docs(_: Request, serving: Serving) -> Response:
    """The page; the path that a proxy shows is put into its links."""
    root = serving.settings.proxy_root_path.encode("ascii", "xmlcharrefreplace")
    body = _file("docs.html").replace(b"{{root}}", root)
    headers = [(b"content-security-policy", _POLICY), (b"x-content-type-options", b"nosniff")]
    return Response(body, content_type=_HTML, headers=headers)


async def asset(request: Request, _: Serving) -> Response:
    """Style or script of the page; nothing else is in reach."""
    name = request.params["file"]
    kind = _TYPES.get(name)
    if kind is None:
        raise RouteNotFoundError(f"The documentation has no file {name[:80]!r}.")
    return Response(_file(name), content_type=kind)


async def openapi_json(_: Request, serving: Serving) -> Response:
    """The OpenAPI document of this server."""
    return json_response(document(serving.routes, serving.settings))


@functools.cache
def _file(name: str) -> bytes:
    return resources.files(__package__).joinpath(name).read_bytes()
