from __future__ import annotations

import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from infinity_emb.server.routes import all_routes
from infinity_emb.server.settings import HttpSettings

BODIES = {
    "/v1/embeddings": {"input": ["a", "b"]},
    "/rerank": {"query": "q", "documents": ["a", "b"], "return_documents": True},
    "/classify": {"input": ["a"]},
    "/v2/embed": {"texts": ["a"]},
}


@pytest.fixture
def document(served):
    return served.get("/openapi.json").json()


def schema_at(document, path, method, status):
    content = document["paths"][path][method]["responses"][status]["content"]["application/json"]
    return {**content["schema"], "components": document["components"]}


def test_every_route_is_documented_and_named_once(document):
    routes = {(route.path, route.method.lower()) for route in all_routes(HttpSettings())}
    documented = {(path, method) for path, methods in document["paths"].items() for method in methods}
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert documented == routes
    assert len(set(ids)) == len(ids)
    assert document["openapi"] == "3.1.0"


def test_every_reference_leads_somewhere(document):
    text = json.dumps(document)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.partition('"')[0] in document["components"]["schemas"]


def test_every_schema_is_a_schema(document):
    for schema in document["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("path", BODIES)
def test_answers_are_as_documented(served, document, path):
    answer = served.post(path, BODIES[path])
    jsonschema.validate(answer.json(), schema_at(document, path, "post", "200"))


def test_models_are_as_documented(served, document):
    jsonschema.validate(served.get("/v1/models").json(), schema_at(document, "/v1/models", "get", "200"))
    one = served.get("/v1/models/fake/model").json()
    jsonschema.validate(one, schema_at(document, "/v1/models/{model}", "get", "200"))


@pytest.mark.parametrize("path", [*BODIES, "/embed", "/predict", "/similarity", "/tokenize"])
@pytest.mark.parametrize("content", [b"{", b'{"input": [], "inputs": [], "texts": []}'])
def test_errors_are_as_documented(served, document, path, content):
    answer = served.post_raw(path, content)
    jsonschema.validate(answer.json(), schema_at(document, path, "post", str(answer.status_code)))


# What the engine double is not made for.
CANNOT = {"/embeddings_image", "/embeddings_audio", "/embed_sparse"}
WITH_EXAMPLE = sorted(route.path for route in all_routes(HttpSettings()) if route.body is not None)


@pytest.mark.parametrize("path", WITH_EXAMPLE)
def test_the_example_of_a_body_is_valid_and_answered_as_documented(served, document, path):
    media = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    jsonschema.validate(media["example"], {**media["schema"], "components": document["components"]})
    answer = served.post(path.replace("{model}", "fake/model"), media["example"])
    assert (answer.status_code == 200) == (path not in CANNOT), answer.text
    jsonschema.validate(answer.json(), schema_at(document, path, "post", str(answer.status_code)))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 2**70) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)
FIELDS = [
    "input",
    "inputs",
    "texts",
    "images",
    "documents",
    "query",
    "messages",
    "model",
    "prompt",
    "prompt_name",
    "input_type",
    "task",
    "truncate",
    "truncation",
    "truncation_side",
    "truncation_direction",
    "truncate_prompt_tokens",
    "max_tokens",
    "normalize",
    "dimensions",
    "encoding_format",
    "embedding_dtype",
    "embedding_type",
    "embedding_types",
    "output_dtype",
    "modality",
    "raw_scores",
    "top_n",
    "top_k",
    "return_documents",
    "rank_fields",
    "parameters",
    "ids",
    "text",
    "tokens",
    "instances",
]
bodies = st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=6)
POSTS = sorted(route.path for route in all_routes(HttpSettings()) if route.method == "POST" and "{" not in route.path)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(POSTS), body=bodies)
def test_no_body_whatever_breaks_the_server(served, path, body):
    answer = served.post_raw(path, json.dumps(body).encode())
    assert answer.status_code < 500 or answer.status_code == 501, (path, body, answer.text)
    json.loads(answer.content)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(POSTS), content=st.binary(max_size=200))
def test_no_bytes_whatever_break_the_server(served, path, content):
    assert served.post_raw(path, content).status_code in {200, 400, 422, 424}
