"""183 requests recorded from real clients get the answer that the client reads.

`TABLE` says which fields each client is checked for. A field is `path:kind` or `path=value`; `[]` means every element.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from api.conftest import Served
from api.fake_engine import FakeEngine
from infinity_emb.errors import InvalidInputError, NotReadyError, OverloadedError
from infinity_emb.server import token_ids
from infinity_emb.types import Task

REQUESTS = [
    json.loads(line) for line in Path(__file__).with_name("golden_requests.jsonl").read_text("utf-8").splitlines()
]
DIM = 384
# The few ids that the recordings use; the real table has its own test.
IDS = {1: b"a", 2: b"b", 3: b"c", 65: b"b", 15339: b"hello", 1917: b" world"}

OPENAI = (
    "object=list",
    "model:str",
    "usage.prompt_tokens:int",
    "usage.total_tokens:int",
    "data[].object=embedding",
    "data[].index:position",
    "data[].embedding:vector",
)
VOYAGE_GROUPS = ("data[].index:position", "data[].data[].embedding:vector", "usage.total_tokens:int")
COHERE_V1 = (
    "id:str",
    "response_type=embeddings_floats",
    "embeddings[]:vector",
    "texts:list",
    "meta.billed_units.input_tokens:int",
)
COHERE_TYPED = ("id:str", "response_type=embeddings_by_type", "embeddings.*:rows", "meta.billed_units.input_tokens:int")
RANKED = ("results[].index:int", "results[].relevance_score:probability", "results:falling")
RERANK = ("object=rerank", "id:str", "model:str", "usage.total_tokens:int", "created:int", *RANKED)
COHERE_RERANK = ("id:str", "meta.api_version.version:str", "meta.billed_units.search_units:int", *RANKED)
VOYAGE_RERANK = ("data[].index:int", "data[].relevance_score:probability", "usage.total_tokens:int", "object=rerank")
TEI_RERANK = ("[].index:int", "[].score:float")
ERROR = ("error.message:str", "error.type:str", "message:str", "detail:str")


class Row(NamedTuple):
    """Requests of some clients to some paths, and what is checked in the answer."""

    path: str
    client: str
    case: str
    fields: tuple[str, ...]
    status: int = 200


TABLE = (
    # Requests that were aimed wrongly, or ask a text model for images.
    Row(r"/v1|/v1/v2/rerank", ".*", ".*", ("error.message:str", "message:str", "detail:str"), 404),
    Row(".*", ".*", "img cls", ("error:str", "error_type=Validation"), 422),
    Row("/v1/embeddings", "openai", "image modality", ERROR, 400),
    Row("/embeddings", "infinity-client", "ic embeddings image|ic vision image", ERROR, 400),
    Row("/v2/embed", "cohere-python", "v2 embed images|v2 embed inputs", ERROR, 400),
    Row("/v1/multimodalembeddings", "voyageai", "mm", ERROR, 400),
    Row("/v1/embeddings", "openai", "empty data", ("error.message:str", "error.param=input", "detail[].loc:list"), 422),
    # OpenAI's shape.
    Row("/v1/embeddings", "huggingface_hub", ".*", ("[]:vector",)),
    Row(
        "/v1/embeddings|/embeddings|/openai/deployments/.*", "infinity-client", ".*", ("id:str", "created:int", *OPENAI)
    ),
    Row("/v1/embeddings|/embeddings|/openai/deployments/.*", ".*", ".*", OPENAI),
    Row("/v1/models", "cohere-python", ".*", ("models[].name:str",)),
    Row(
        "/v1/models",
        ".*",
        ".*",
        ("object=list", "data[].id:str", "data[].object=model", "data[].created:int", "data[].owned_by:str"),
    ),
    Row("/v1/models/.*", ".*", ".*", ("id=BAAI/bge-small", "object=model")),
    # Infinity's own.
    Row(
        "/models",
        "infinity-client",
        ".*",
        ("data[].stats:object", "data[].owned_by=infinity", "data[].backend:str", "data[].capabilities:list"),
    ),
    Row("/health", "infinity-client", ".*", ("unix:float",)),
    Row(
        "/classify",
        "infinity-client",
        ".*",
        ("object=classify", "data[][].label:str", "data[][].score:probability", "usage.total_tokens:int"),
    ),
    # Rerank: TEI's list, a string document on the native path, an object on the versioned ones, Voyage's data.
    Row("/rerank", "llama-index|haystack-ai", ".*", TEI_RERANK),
    Row("/rerank", "litellm", "huggingface/ rerank", (*TEI_RERANK, "[].text:str")),
    Row("/rerank", "litellm", "infinity/ .*|inf 429|hosted_vllm/ rerank", (*RERANK, "results[].document:str")),
    Row("/rerank", "infinity-client", "ic rerank", (*RERANK, "results[].document:str")),
    Row("/rerank", ".*", ".*", (*RERANK, "results[].document:absent")),
    Row(
        "/v[12]/rerank",
        "cohere-python|node clients|litellm|chromadb",
        "v1 rerank|node cohere v1 rerank|cohere/ .*|jina_ai/ .*|rerankers (cohere|jina)",
        (*COHERE_RERANK, "results[].document.text:str"),
    ),
    Row(
        "/v1/rerank",
        "cohere-python",
        "v1 rerank dict",
        (*COHERE_RERANK, "results[].document.text:str", "results[].document.title=t"),
    ),
    Row("/v1/rerank", "voyageai|litellm|node clients", "rerank.*|voyage/ rerank|node voyage rerank", VOYAGE_RERANK),
    Row("/v1/rerank", "chromadb", "rerankers voyage", VOYAGE_RERANK),
    Row(
        "/v1/rerank",
        "chromadb",
        "rerankers mixedbread",
        ("data[].score:probability", "data[].index:int", "data[].input:str"),
    ),
    Row("/v[12]/rerank", ".*", ".*", (*COHERE_RERANK, *RERANK, "results[].document:absent")),
    # Cohere.
    Row("/v1/embed", ".*", "v1 embed model|lc cohere .*", COHERE_TYPED),
    Row("/v1/embed", ".*", ".*", COHERE_V1),
    Row("/v2/embed", ".*", ".*", COHERE_TYPED),
    Row("/v1/tokenize", ".*", ".*", ("tokens[]:int", "token_strings[]:str")),
    Row("/v1/classify", ".*", ".*", ("id:str", "classifications[].prediction:str", "classifications[].labels:object")),
    Row("/v1/contextualizedembeddings", ".*", ".*", VOYAGE_GROUPS),
    # TEI.
    Row("/", ".*", "tc", ("[][].label:str", "[][].score:probability")),
    Row("/predict", "huggingface_hub|node clients", ".*", ("[][].label:str", "[][].score:probability")),
    Row("/|/similarity", ".*", "ss.*|hf js ss", ("[]:float",)),
    Row("/|/embed", ".*", ".*", ("[]:vector",)),
)


def case_of(request: dict[str, Any]) -> str:
    body = request["body"]
    if isinstance(body, dict) and body.get("modality") == "image":
        return (
            "image modality"
            if request["client"].startswith("openai")
            else f"{request['case'].removesuffix(' image')} image"
        )
    return request["case"] or ""


def row_of(request: dict[str, Any]) -> Row:
    path = request["path"].partition("?")[0]
    for row in TABLE:
        if (
            re.fullmatch(row.path, path)
            and re.match(row.client, request["client"])
            and re.fullmatch(row.case, case_of(request))
        ):
            return row
    raise AssertionError(f"no row for {request['client']} {request['case']} {path}")


def server_for(request: dict[str, Any]) -> Served:
    case = request["case"] or ""
    tasks = frozenset({Task.CLASSIFY}) if case in {"tc", "tc predict", "hf js tc", "img cls"} else frozenset(Task)
    return Served(FakeEngine(name="BAAI/bge-small", tasks=tasks, dim=DIM))


def send(server: Served, request: dict[str, Any]) -> Any:
    body = request["body"]
    content = b"" if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return server.request(request["method"], request["path"], content=content, headers=request["headers"])


def values_at(answer: Any, path: str) -> list[Any]:
    """Everything that a path like `data[].index` names."""
    found = [answer]
    for name, each in re.findall(r"([^.\[\]]+)|(\[\])", path):
        if each:
            found = [item for value in found for item in value]
        elif name == "*":
            found = [item for value in found for item in value.values()]
        else:
            found = [value[name] for value in found]
    return found


def check_vector(value: Any, body: dict[str, Any]) -> None:
    dim = body.get("dimensions") or body.get("output_dimension") or DIM
    dtype = body.get("output_dtype") or "float"
    if dtype in {"binary", "ubinary"}:
        dim //= 8
    if body.get("encoding_format") == "base64":
        kind = {"float": "<f4", "int8": "i1", "binary": "i1"}.get(dtype, "u1")
        value = np.frombuffer(base64.b64decode(value, validate=True), kind)
    assert len(value) == dim
    if dtype == "float" and body.get("normalize") is not False:
        assert np.linalg.norm(np.array(value, np.float32)) == pytest.approx(1, abs=1e-5)


def check(field: str, answer: Any, request: dict[str, Any]) -> None:
    path, equals, expected = field.partition("=")
    if equals:
        assert {str(value) for value in values_at(answer, path)} == {expected}, field
        return
    path, _, kind = field.partition(":")
    if kind == "absent":
        assert all("document" not in item for item in values_at(answer, path.rpartition(".")[0])), field
        return
    values = values_at(answer, path)
    assert values, field
    if kind in TYPES:
        assert all(isinstance(value, TYPES[kind]) and not isinstance(value, bool) for value in values), field
    else:
        KINDS[kind](values, path, request["body"], answer)


def check_probability(values: list[Any], *_: Any) -> None:
    assert all(0 < value < 1 for value in values)


def check_position(values: list[Any], *_: Any) -> None:
    assert values == list(range(len(values)))


def check_vectors(values: list[Any], path: str, body: dict[str, Any], _: Any) -> None:
    for value in values:
        check_vector(value, body)
    sent = body.get("input", body.get("inputs", body.get("texts")))
    if isinstance(sent, list) and "[].data" not in path and not isinstance(sent[0], int):
        assert len(values) == len(sent)


def check_rows(values: list[Any], _: str, body: dict[str, Any], answer: Any) -> None:
    assert set(answer["embeddings"]) == set(body.get("embedding_types") or ["float"])
    assert all(len(value) == len(body["texts"]) for value in values)


def check_falling(values: list[Any], _: str, body: dict[str, Any], __: Any) -> None:
    scores = [item["relevance_score"] for item in values[0]]
    assert scores == sorted(scores, reverse=True)
    wanted = body.get("top_n") or body.get("top_k") or len(body["documents"])
    assert len(scores) == min(wanted, len(body["documents"]))


TYPES = {"str": str, "int": int, "float": (float, int), "list": list, "object": dict}
KINDS = {
    "probability": check_probability,
    "position": check_position,
    "vector": check_vectors,
    "rows": check_rows,
    "falling": check_falling,
}


@pytest.fixture(autouse=True)
def _cl100k(monkeypatch):
    monkeypatch.setattr(token_ids, "load_table", lambda: IDS)


@pytest.mark.parametrize(
    "request_", REQUESTS, ids=lambda row: f"{row['client'].partition(' ')[0]}-{row['case']}-{row['path']}"
)
def test_a_recorded_request_gets_what_its_client_reads(request_):
    row = row_of(request_)
    response = send(server_for(request_), request_)
    assert response.status_code == row.status, response.text
    assert response.headers["x-request-id"]
    for field in row.fields:
        check(field, response.json(), request_)


FAULTS = {
    429: OverloadedError("The waiting line is full.", retry_after_s=1),
    503: NotReadyError("The model is being restarted.", retry_after_s=1),
    400: InvalidInputError("That value is not possible."),
}
RETRIED = [row for row in REQUESTS if row.get("answered") in FAULTS]


@pytest.mark.parametrize(
    "request_", RETRIED, ids=lambda row: f"{row['client'].partition(' ')[0]}-{row['case']}-{row['answered']}"
)
def test_a_recorded_fault_is_told_as_its_client_reads_it(request_):
    server = server_for(request_)
    status = request_["answered"]
    server.engine.error = FAULTS[status]
    response = send(server, request_)
    body = response.json()
    if status != 400:
        assert int(response.headers["retry-after"]) == 1
    if isinstance(body["error"], str):
        assert body["error_type"] in {"Overloaded", "Unhealthy", "Validation"}
        assert response.status_code == status
        return
    assert response.status_code == status
    assert body["error"]["message"] == body["message"] == body["detail"]


def test_every_recording_is_here_and_every_row_of_the_table_is_used():
    assert len(REQUESTS) == 183
    assert {row_of(request) for request in REQUESTS} == set(TABLE)
