from __future__ import annotations

import pytest

from infinity_emb.types import Priority


def call_of(served):
    """Circumstances of the last request that reached the engine."""
    return served.engine.calls[-1][3]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, None),
        ({"priority": "interactive"}, Priority.INTERACTIVE),
        ({"priority": "Bulk"}, Priority.BULK),
        ({"priority": -1}, Priority.INTERACTIVE),
        ({"priority": 0}, None),
        ({"priority": 999}, Priority.BULK),
        ({"priority": "5"}, Priority.BULK),
        ({"priority": None, "service_tier": None}, None),
        ({"service_tier": "auto"}, None),
        ({"service_tier": "default"}, None),
        ({"service_tier": "flex"}, Priority.BULK),
        ({"service_tier": "priority"}, Priority.INTERACTIVE),
        ({"priority": "bulk", "service_tier": "priority"}, Priority.BULK),
    ],
)
def test_the_body_names_the_class(served, fields, expected):
    assert served.post("/v1/embeddings", {"input": "x", **fields}).status_code == 200
    assert call_of(served).priority is expected


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/rerank", {"query": "x", "documents": ["y"]}),
        ("/classify", {"input": ["x"]}),
        ("/v2/embed", {"texts": ["x"], "model": "m", "input_type": "search_query", "embedding_types": ["float"]}),
        ("/embed", {"inputs": "x"}),
    ],
)
def test_every_dialect_takes_it(served, path, body):
    assert served.post(path, {**body, "priority": 7}).status_code == 200
    assert call_of(served).priority is Priority.BULK


def test_the_header_names_it_unless_the_body_does(served):
    header = {"x-priority": "bulk"}
    served.post("/v1/embeddings", {"input": "x"}, headers=header)
    assert call_of(served).priority is Priority.BULK
    served.post("/v1/embeddings", {"input": "x", "priority": "interactive"}, headers=header)
    assert call_of(served).priority is Priority.INTERACTIVE


@pytest.mark.parametrize(
    ("fields", "headers", "field"),
    [
        ({"priority": "urgent"}, {}, "priority"),
        ({"service_tier": "gold"}, {}, "service_tier"),
        ({}, {"x-priority": "?"}, "x-priority"),
    ],
)
def test_a_class_that_does_not_exist_is_refused_with_those_that_do(served, fields, headers, field):
    answer = served.post("/v1/embeddings", {"input": "x", **fields}, headers=headers)
    assert answer.status_code == 422
    assert answer.json()["error"]["message"].startswith(f"{field}: ")
    assert "'interactive'" in answer.json()["error"]["message"]


def test_requests_of_one_key_have_one_owner_and_those_without_none(serve, served):
    served.post("/v1/embeddings", {"input": "x"})
    assert call_of(served).owner is None
    locked = serve(api_keys=("first", "second"))
    owners = []
    for key in ("first", "second", "first"):
        locked.post("/v1/embeddings", {"input": "x"}, headers={"x-api-key": key})
        owners.append(call_of(locked).owner)
    assert owners[0] == owners[2]
    assert len(set(owners)) == 2
