"""The OpenAPI 3.1 document, made from the route table and the types that decode requests."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import msgspec

from infinity_emb.server.answers import ANSWERS, COMPONENTS
from infinity_emb.server.examples import EXAMPLES
from infinity_emb.server.version import package_version

if TYPE_CHECKING:
    from infinity_emb.server.routing import Route
    from infinity_emb.server.settings import HttpSettings

_REF = "#/components/schemas/{name}"
_COMMON_ERRORS = {
    "400": "The request is well formed, but this server or model cannot do it",
    "401": "No key, or a wrong one",
    "404": "No such path or model",
    "413": "The body is too large",
    "415": "The content encoding is not supported",
    "422": "The form of the body is wrong",
    "424": "The model cannot do this, or failed (TEI's routes)",
    "429": "The waiting line is full; see Retry-After",
    "500": "The model failed",
    "503": "Loading or shutting down; see Retry-After",
    "504": "The time limit passed",
}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "model": {"type": "string", "minLength": 1, "description": "Served name; slashes may be left as they are."},
    "file": {"enum": ["docs.css", "docs.js"]},
}
_AS_STRING: dict[str, list[dict[str, Any]]] = {
    "boolean": [{"enum": [0, 1]}, {"type": "string", "pattern": "^([Tt]rue|TRUE|[Ff]alse|FALSE|0|1|[Nn]ull|NULL)$"}],
    "integer": [{"type": "string", "pattern": "^(-?(0|[1-9][0-9]*)([.]0+)?|[Nn]ull|NULL)$"}],
}
_HEADERS = {
    "x-request-id": {"schema": {"type": "string"}, "description": "The id of the request, yours or a new one."},
}


@functools.lru_cache(maxsize=8)
def document(routes: tuple[Route, ...], settings: HttpSettings) -> dict[str, Any]:
    """Everything that a server with these routes and settings offers."""
    bodies = list(dict.fromkeys(route.body for route in routes if route.body is not None))
    schemas, components = msgspec.json.schema_components(bodies, ref_template=_REF)
    components = {name: _loosened(schema) for name, schema in components.items()}
    refs = dict(zip(bodies, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, refs, settings)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "infinity_emb",
            "version": package_version(),
            "description": "Embeddings, reranking and classification. Null means absent; unknown fields are ignored.",
        },
        "servers": [{"url": settings.proxy_root_path or "/"}],
        "paths": paths,
        "components": {
            "schemas": components | COMPONENTS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "x-api-key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "api-key": {"type": "apiKey", "in": "header", "name": "api-key"},
            },
        },
    }


def _loosened(schema: Any) -> Any:
    """The schema that decoding follows: numbers and booleans may be written as strings, booleans as 0 and 1."""
    if isinstance(schema, list):
        return [_loosened(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kinds = schema.get("anyOf", [])
    if {"type": "string"} in kinds:
        also = [{"enum": [0, 1]}] if {"type": "boolean"} in kinds else []
        return {**schema, "anyOf": [kind if "items" not in kind else _loosened(kind) for kind in kinds] + also}
    if kinds:
        loosened = [_loosened(kind) for kind in kinds]
        flat = [choice for kind in loosened for choice in (kind["anyOf"] if set(kind) == {"anyOf"} else [kind])]
        return {**schema, "anyOf": flat}
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _AS_STRING:
        return {"anyOf": [schema, *_AS_STRING[kind]]}
    return {key: _loosened(value) for key, value in schema.items()}


def _operation(route: Route, refs: dict[type[Any], Any], settings: HttpSettings) -> dict[str, Any]:
    name = f"{route.method}_{route.path}".lower()
    operation: dict[str, Any] = {
        "operationId": "".join(char if char.isalnum() else "_" for char in name).strip("_"),
        "summary": route.summary,
        "description": (route.handler.__doc__ or "").strip(),
        "tags": [route.tag],
        "responses": _responses(route),
    }
    if "{" in route.path:
        parameter = route.path.partition("{")[2].partition("}")[0]
        operation["parameters"] = [
            {"name": parameter, "in": "path", "required": True, "schema": _PARAMETERS[parameter]}
        ]
    if route.body is not None:
        media = {"schema": refs[route.body], "example": EXAMPLES[route.body.__name__]}
        operation["requestBody"] = {"required": True, "content": {"application/json": media}}
    if settings.api_keys and route.access != "always" and route.access not in settings.public_routes:
        operation["security"] = [{"bearer": []}, {"x-api-key": []}, {"api-key": []}]
    return operation


def _responses(route: Route) -> dict[str, Any]:
    responses: dict[str, Any] = dict(ANSWERS[route.answer])
    error = "TeiError" if route.dialect == "tei" else "Error"
    either = [{"$ref": _REF.format(name=kind)} for kind in dict.fromkeys((error, "Error", "TeiError"))]
    codes = _COMMON_ERRORS if route.body is not None else {"401": "", "404": "", "503": ""}
    for status, text in codes.items():
        if route.access == "always" and status != "503":
            continue
        schema: dict[str, Any] = {"anyOf": either} if route.body is not None else {}
        responses[status] = {
            "description": text or _COMMON_ERRORS[status],
            "content": {"application/json": {"schema": schema}},
            "headers": _HEADERS,
        }
    return responses
