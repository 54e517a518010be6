from __future__ import annotations

import math

import pytest

from api.fake_engine import FakeEngine, fake_score
from infinity_emb.config.choices import RerankDocument
from infinity_emb.types import Task

DOCUMENTS = ["Tea is hot.", "Lima is the capital of Peru.", "Peru grows potatoes."]
QUERY = "capital of Peru"
ORDER = sorted(range(3), key=lambda index: -fake_score(QUERY, DOCUMENTS[index]))


def ask(served, path="/rerank", **fields):
    return served.post(path, {"query": QUERY, "documents": DOCUMENTS, **fields})


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_results_come_best_first_with_their_place_in_the_request(served, path):
    body = ask(served, path).json()
    assert [item["index"] for item in body["results"]] == ORDER
    for item in body["results"]:
        expected = 1 / (1 + math.exp(-fake_score(QUERY, DOCUMENTS[item["index"]])))
        assert item["relevance_score"] == pytest.approx(expected, abs=1e-6)
    assert body["data"] == body["results"]


@pytest.mark.parametrize(("top_n", "count"), [(None, 3), (3, 3), (99, 3), (1, 1), (2, 2), ("2", 2)])
@pytest.mark.parametrize("field", ["top_n", "top_k"])
def test_top_n_keeps_the_best(served, field, top_n, count):
    results = ask(served, **{field: top_n}).json()["results"]
    assert [item["index"] for item in results] == ORDER[:count]


@pytest.mark.parametrize("top_n", [0, -1])
def test_top_n_below_one_is_refused(served, top_n):
    answer = ask(served, top_n=top_n)
    assert answer.status_code == 422
    assert answer.json()["error"]["param"] == "top_n"


@pytest.mark.parametrize("value", [False, None, "false"])
def test_the_document_key_is_absent_unless_asked_for(served, value):
    assert all("document" not in item for item in ask(served, return_documents=value).json()["results"])


@pytest.mark.parametrize(
    ("path", "form", "expected"),
    [
        ("/rerank", RerankDocument.AUTO, str),
        ("/v1/rerank", RerankDocument.AUTO, dict),
        ("/v2/rerank", RerankDocument.AUTO, dict),
        ("/rerank", RerankDocument.OBJECT, dict),
        ("/v1/rerank", RerankDocument.STRING, str),
    ],
)
def test_the_document_is_a_string_on_the_native_path_and_an_object_on_the_others(serve, path, form, expected):
    results = ask(serve(rerank_document=form), path, return_documents="true").json()["results"]
    assert all(type(item["document"]) is expected for item in results)


def test_with_the_prefix_v1_that_path_is_native(serve):
    results = ask(serve(url_prefix="/v1"), "/v1/rerank", return_documents=True).json()["results"]
    assert results[0]["document"] == DOCUMENTS[ORDER[0]]


def test_object_documents_are_read_and_given_back_as_they_came(served):
    documents = ["a", {"text": "b"}, {"text": "c", "id": 7}]
    results = served.post("/v1/rerank", {"query": "q", "documents": documents, "return_documents": True}).json()[
        "results"
    ]
    given = {item["index"]: item["document"] for item in results}
    assert given == {0: {"text": "a"}, 1: {"text": "b"}, 2: {"text": "c", "id": 7}}
    assert served.engine.calls[-1][1] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("document", "fields", "text"),
    [
        ({"title": "t", "text": "b"}, ["title", "text"], "title: t\ntext: b"),
        ({"title": "t", "text": "b"}, ["title"], "t"),
        ({"title": "t", "text": "b"}, None, "b"),
        ({"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]}, None, "x\ny"),
    ],
)
def test_the_text_of_an_object_document(served, document, fields, text):
    served.post("/v1/rerank", {"query": "q", "documents": [document], "rank_fields": fields})
    assert served.engine.calls[-1][1] == [text]


def test_a_document_without_text_is_refused_by_its_place(served):
    answer = served.post("/v1/rerank", {"query": "q", "documents": ["a", {"id": 7}]})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["body", "documents", 1]


@pytest.mark.parametrize(
    "body", [{"query": "q", "documents": []}, {"query": "q", "texts": []}, {"query": "q"}, {"documents": ["a"]}]
)
def test_nothing_to_rank_is_422(served, body):
    assert served.post("/rerank", body).status_code == 422


def test_raw_scores_are_the_logits(served):
    results = ask(served, raw_scores=True).json()["results"]
    assert [item["relevance_score"] for item in results] == [fake_score(QUERY, DOCUMENTS[index]) for index in ORDER]


def test_an_embedder_asked_to_rerank_is_400_and_names_what_it_offers(serve):
    answer = ask(serve(FakeEngine(tasks=frozenset({Task.EMBED}))))
    assert answer.status_code == 400
    assert "cannot rerank; it offers: embed" in answer.json()["error"]["message"]


def test_texts_get_teis_bare_list_and_teis_errors(served):
    rows = served.post("/rerank", {"query": QUERY, "texts": DOCUMENTS, "return_text": True}).json()
    assert [row["index"] for row in rows] == ORDER
    assert [row["text"] for row in rows] == [DOCUMENTS[index] for index in ORDER]
    served.engine.tasks = frozenset({Task.EMBED})
    refused = served.post("/rerank", {"query": QUERY, "texts": DOCUMENTS})
    assert refused.status_code == 424
    assert set(refused.json()) == {"error", "error_type"}


def test_documents_with_odd_characters_come_back_as_valid_json(served):
    raw = b'{"query":"q \\ud83d","documents":["bad \\ud83d tail","nul \\u0000 byte"],"return_documents":true}'
    results = served.post_raw("/rerank", raw).json()["results"]
    assert {item["document"] for item in results} == {"bad \ufffd tail", "nul \u0000 byte"}
