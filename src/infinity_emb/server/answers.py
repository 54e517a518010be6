"""Schemas of answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Any

_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
_NUMBER = {"type": "number"}
_NULLABLE_STRING = {"type": ["string", "null"]}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    """An object that may hold more than its properties."""
    return {"type": "object", "properties": properties, "required": required.split()}


def _list(item: Any) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


COMPONENTS: dict[str, Any] = {
    "Usage": _object(
        "prompt_tokens total_tokens",
        prompt_tokens=_INTEGER,
        total_tokens=_INTEGER,
        averaged_items={**_list(_INTEGER), "description": "Positions of the items that were read in pieces."},
        truncated_items={**_list(_INTEGER), "description": "Positions of the items that were cut; absent if none was."},
    ),
    "Embedding": _object(
        "object embedding index",
        object={"const": "embedding"},
        embedding={"anyOf": [_list(_NUMBER), _STRING], "description": "Numbers, or base64 of little-endian float32."},
        index=_INTEGER,
    ),
    "Embeddings": _object(
        "object data model usage id created",
        object={"const": "list"},
        data=_list(_ref("Embedding")),
        model=_STRING,
        usage=_ref("Usage"),
        id=_STRING,
        created=_INTEGER,
    ),
    "RerankResult": _object(
        "relevance_score index",
        relevance_score=_NUMBER,
        index=_INTEGER,
        document={"anyOf": [_STRING, {"type": "object"}], "description": "Only if return_documents is true."},
    ),
    "Reranked": _object(
        "object results data model usage meta id created",
        object={"const": "rerank"},
        results=_list(_ref("RerankResult")),
        data=_list(_ref("RerankResult")),
        model=_STRING,
        usage=_ref("Usage"),
        meta={"type": "object"},
        id=_STRING,
        created=_INTEGER,
    ),
    "Label": _object("score label", score=_NUMBER, label=_STRING),
    "Classified": _object(
        "object data model usage id created",
        object={"const": "classify"},
        data=_list(_list(_ref("Label"))),
        model=_STRING,
        usage=_ref("Usage"),
        id=_STRING,
        created=_INTEGER,
    ),
    "CohereEmbeddings": _object(
        "id response_type embeddings texts meta",
        id=_STRING,
        response_type={"enum": ["embeddings_floats", "embeddings_by_type"]},
        embeddings={"anyOf": [{"type": "array"}, {"type": "object"}]},
        texts=_list(_STRING),
        meta={"type": "object"},
    ),
    "Model": _object(
        "id object owned_by created backend stats capabilities",
        id=_STRING,
        object={"const": "model"},
        owned_by={"const": "infinity"},
        created=_INTEGER,
        backend=_STRING,
        stats=_object(
            "queue_fraction queue_absolute results_pending batch_size",
            queue_fraction=_NUMBER,
            queue_absolute=_INTEGER,
            results_pending=_INTEGER,
            batch_size=_INTEGER,
        ),
        capabilities=_list(_STRING),
    ),
    "ModelList": _object("object data", object={"const": "list"}, data=_list(_ref("Model")), models=_list({})),
    "Error": _object(
        "error message detail",
        error=_object("message type param code", message=_STRING, type=_STRING, param=_NULLABLE_STRING, code=_STRING),
        message=_STRING,
        detail={"anyOf": [_STRING, _list(_object("loc msg type", loc={"type": "array"}, msg=_STRING, type=_STRING))]},
    ),
    "TeiError": _object("error error_type", error=_STRING, error_type=_STRING),
}


def _ok(kind: str, schema: Any) -> dict[str, Any]:
    return {"200": {"description": "The answer", "content": {kind: {"schema": schema}}}}


def _compact(schema: Any) -> dict[str, Any]:
    """JSON, or what `Accept` asks for."""
    answer = _ok("application/json", schema)
    binary = {"schema": {"type": "string", "format": "binary"}}
    kinds = ("application/octet-stream", "application/x-npy", "application/vnd.apache.arrow.stream")
    answer["200"]["content"] |= dict.fromkeys(kinds, binary)
    return answer


ANSWERS: dict[str, Any] = {
    "Embeddings": _compact({"anyOf": [_ref("Embeddings"), _list({})]}),
    "Reranked": _ok("application/json", {"anyOf": [_ref("Reranked"), _list({"type": "object"})]}),
    "Classified": _ok("application/json", {"anyOf": [_ref("Classified"), {"type": "object"}]}),
    "CohereEmbeddings": _ok("application/json", _ref("CohereEmbeddings")),
    "ModelList": _ok("application/json", _ref("ModelList")),
    "Model": _ok("application/json", _ref("Model")),
    "Object": _ok("application/json", {"type": "object"}),
    "Any": _compact({}),
    "Text": _ok("*/*", {"type": "string"}),
    "Html": _ok("text/html", {"type": "string"}),
    "Redirect": {"307": {"description": "To the documentation"}, **_ok("application/json", {"type": "object"})},
}
