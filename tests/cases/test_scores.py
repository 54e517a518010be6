"""Cases about reranking and classification."""

from __future__ import annotations

import asyncio
import shutil

import numpy as np
import pytest

from cases.reference import label_scores, pair_logits
from cases.served import REFUSED, Served, message_of
from infinity_emb.config.choices import RerankDocument
from infinity_emb.errors import CheckpointError
from tiny import edit_json, tiny_bert

LIMIT = 64
QUERY = "capital of peru"
DOCUMENTS = ["tea is hot .", "lima is the capital of peru .", "peru grows potatoes ."]
REVIEWS = ["I like it", "I hate it", "it is fine , tea and coffee"]
RERANK_PATHS = ["/rerank", "/v1/rerank", "/v2/rerank"]


def sigmoid(logits):
    return 1 / (1 + np.exp(-np.asarray(logits, np.float64)))


def only_score(rows):
    """The score of the only label, of each text."""
    return [next(iter(row.values())) for row in rows]


@pytest.fixture(scope="module")
def logits(folders):
    return pair_logits(folders["rerank"], QUERY, DOCUMENTS, LIMIT)


@pytest.mark.parametrize("path", RERANK_PATHS)
def test_b043_the_best_come_first_and_no_more_than_asked_for(reranker, logits, path):
    results = reranker.post(path, query=QUERY, documents=DOCUMENTS, top_n=2).json()["results"]
    best = np.argsort(-logits)[:2]
    assert [result["index"] for result in results] == best.tolist()
    np.testing.assert_allclose([r["relevance_score"] for r in results], sigmoid(logits[best]), atol=1e-4)


def test_b043_equal_documents_keep_their_order(reranker):
    results = reranker.post("/rerank", query=QUERY, documents=["tea"] * 30).json()["results"]
    assert [result["index"] for result in results] == list(range(30))


@pytest.mark.parametrize("fields", [{}, {"top_n": None}, {"top_n": 3}, {"top_n": 99}])
def test_b044_no_limit_or_a_large_one_gives_every_document(reranker, fields):
    assert len(reranker.post("/rerank", query=QUERY, documents=DOCUMENTS, **fields).json()["results"]) == 3


@pytest.mark.parametrize("path", RERANK_PATHS)
@pytest.mark.parametrize("top_n", [0, -1])
def test_b044_zero_and_negative_limits_are_refused_not_taken_for_a_slice(reranker, path, top_n):
    assert "top_n" in message_of(reranker.post(path, query=QUERY, documents=DOCUMENTS, top_n=top_n))


@pytest.mark.parametrize("top_n", [None, 0, -1, 99])
def test_b044_in_process_nothing_and_less_mean_all(engines, top_n):
    ranked, _ = asyncio.run(engines["rerank"].rerank(query=QUERY, docs=DOCUMENTS, top_n=top_n))
    assert len(ranked) == 3


ACTIVATIONS = [
    {},
    {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
    {"sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid"},
    {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
    {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}},
]


@pytest.mark.parametrize("saved", ACTIVATIONS, ids=str)
def test_b045_a_score_is_the_sigmoid_of_the_logit_exactly_once(folders, start, tmp_path, logits, saved):
    shutil.copytree(folders["rerank"], tmp_path / "model")
    edit_json(tmp_path / "model/config.json", **saved)
    server = Served(start(tmp_path / "model"))
    scores, raw = server.rerank(QUERY, DOCUMENTS), server.rerank(QUERY, DOCUMENTS, raw_scores=True)
    np.testing.assert_allclose(raw, logits, atol=1e-4)
    np.testing.assert_allclose(scores, sigmoid(logits), atol=1e-4)
    assert np.argsort(scores).tolist() == np.argsort(raw).tolist()


def test_b045_large_logits_give_scores_inside_zero_and_one(folders, start, tmp_path, logits):
    from safetensors.numpy import load_file, save_file

    shutil.copytree(folders["rerank"], tmp_path / "model")
    tensors = load_file(tmp_path / "model/model.safetensors")
    factor = 9 / np.abs(logits).max()
    for name in ("classifier.weight", "classifier.bias"):
        tensors[name] = (tensors[name] * factor).astype(np.float32)
    save_file(tensors, tmp_path / "model/model.safetensors", metadata={"format": "pt"})
    scores = Served(start(tmp_path / "model")).rerank(QUERY, DOCUMENTS)
    np.testing.assert_allclose(scores, sigmoid(logits * factor), atol=1e-4)
    assert scores.max() > 0.9 or scores.min() < 0.1  # squeezed scores never leave 0.50 to 0.73


@pytest.mark.parametrize(
    ("name", "path", "asked", "offered"),
    [
        ("embed", "/rerank", "rerank", "embed"),
        ("embed", "/classify", "classify", "embed"),
        ("rerank", "/v1/embeddings", "embed", "rerank"),
        ("classify", "/v1/embeddings", "embed", "classify"),
        ("classify", "/rerank", "rerank", "classify"),
    ],
)
def test_b048_a_task_the_model_was_not_made_for_is_named_with_its_offer(everything, name, path, asked, offered):
    body = {"model": f"acme/{name}", "input": ["x"], "query": "q", "documents": ["x"]}
    answer = everything.post(path, **body)
    message = message_of(answer)
    assert answer.status_code == 400
    for word in (f"acme/{name}", asked, offered):
        assert word in message


def test_b048_models_shows_what_each_can_do(everything):
    entries = {entry["id"]: entry["capabilities"] for entry in everything.get("/models").json()["data"]}
    assert entries["acme/embed"] == ["embed"]
    assert "rerank" in entries["acme/rerank"]
    assert "classify" in entries["acme/classify"]
    assert all("embed" not in entries[f"acme/{name}"] for name in ("rerank", "classify", "multi"))


def test_b049_a_folder_tells_its_task_as_the_repository_would(folders, start, tmp_path, reranker, monkeypatch):
    shutil.copytree(folders["rerank"], tmp_path / "models/c")
    monkeypatch.chdir(tmp_path)
    engine = start("./models/c")
    assert engine.capabilities == {"rerank"}
    copied = Served(engine).rerank(QUERY, DOCUMENTS)
    np.testing.assert_allclose(copied, reranker.rerank(QUERY, DOCUMENTS), atol=1e-6)


OBJECTS = ["a", {"text": "b"}, {"text": "c", "id": 7}]


@pytest.mark.parametrize("path", RERANK_PATHS)
def test_b050_documents_are_strings_or_objects_with_a_text(reranker, path):
    scores = reranker.rerank(QUERY, OBJECTS)
    np.testing.assert_allclose(scores, reranker.rerank(QUERY, ["a", "b", "c"]), atol=1e-6)
    results = reranker.post(path, query=QUERY, documents=OBJECTS, return_documents=True).json()["results"]
    assert all({"index", "relevance_score", "document"} <= set(result) for result in results)


@pytest.mark.parametrize(("form", "wrap"), [("string", lambda text: text), ("object", lambda text: {"text": text})])
def test_b050_the_form_of_returned_documents_is_one_for_all(engines, form, wrap):
    server = Served(engines["rerank"], rerank_document=RerankDocument(form))
    results = server.post("/rerank", query=QUERY, documents=["a", {"text": "b"}], return_documents=True).json()
    assert {result["index"]: result["document"] for result in results["results"]} == {0: wrap("a"), 1: wrap("b")}


def test_b050_an_object_without_text_is_refused_by_its_index(reranker):
    message = message_of(reranker.post("/rerank", query=QUERY, documents=["a", {"id": 7}]))
    assert "documents.1" in message


@pytest.mark.parametrize("path", RERANK_PATHS)
@pytest.mark.parametrize("fields", [{}, {"return_documents": False}, {"return_documents": None}])
def test_b051_a_document_that_was_not_asked_for_is_absent_not_null(reranker, path, fields):
    for result in reranker.post(path, query=QUERY, documents=DOCUMENTS, **fields).json()["results"]:
        assert set(result) == {"index", "relevance_score"}


def test_b051_a_document_that_was_asked_for_is_the_text_as_sent(reranker):
    results = reranker.post("/rerank", query=QUERY, documents=DOCUMENTS, return_documents=True).json()["results"]
    assert {result["index"]: result["document"] for result in results} == dict(enumerate(DOCUMENTS))


@pytest.mark.parametrize("path", RERANK_PATHS)
@pytest.mark.parametrize("body", [{"documents": []}, {"texts": []}, {"documents": None}, {}])
def test_b052_no_documents_are_a_refusal_that_names_the_field(reranker, path, body):
    answer = reranker.post(path, query=QUERY, **body)
    assert answer.status_code in REFUSED
    assert next(iter(body), "documents") in answer.text
    assert reranker.rerank(QUERY, DOCUMENTS).shape == (3,)


@pytest.mark.parametrize("task", ["rerank", "classify"])
def test_b053_a_generative_checkpoint_is_not_given_a_random_head(start, tmp_path, task):
    folder = tiny_bert(tmp_path / "generative", modules=False)
    edit_json(folder / "config.json", architectures=["BertLMHeadModel"])
    with pytest.raises(CheckpointError, match="BertLMHeadModel has no classification head"):
        start(folder, task=task)


def test_b053_a_head_that_is_named_but_missing_is_refused(start, tmp_path):
    folder = tiny_bert(tmp_path / "headless", modules=False)
    edit_json(folder / "config.json", architectures=["BertForSequenceClassification"], num_labels=1)
    with pytest.raises(CheckpointError, match="no classification head"):
        start(folder)


@pytest.mark.parametrize("name", ["classify", "multi"])
def test_b056_one_of_several_labels_is_a_softmax_and_several_at_once_are_sigmoids(everything, folders, name):
    scores = everything.classify(REVIEWS, model=f"acme/{name}")
    expected = label_scores(folders[name], REVIEWS, LIMIT)
    for found, wanted in zip(scores, expected, strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)
        assert (sum(found.values()) == pytest.approx(1.0, abs=1e-4)) == (name == "classify")


@pytest.mark.parametrize("name", ["classify", "multi"])
def test_b056_raw_scores_are_the_logits(everything, folders, name):
    scores = everything.classify(REVIEWS, model=f"acme/{name}", raw_scores=True)
    for found, wanted in zip(scores, label_scores(folders[name], REVIEWS, LIMIT, "none"), strict=True):
        assert found == pytest.approx(wanted, abs=1e-4)


def test_b056_a_single_label_is_a_sigmoid(everything, folders):
    scores = everything.classify(REVIEWS, model="acme/rerank")
    wanted = label_scores(folders["rerank"], REVIEWS, LIMIT, "sigmoid")
    np.testing.assert_allclose(only_score(scores), only_score(wanted), atol=1e-4)


@pytest.mark.parametrize("named", [True, False])
def test_b057_labels_are_those_of_the_checkpoint(folders, start, tmp_path, named):
    shutil.copytree(folders["classify"], tmp_path / "model")
    if not named:
        edit_json(tmp_path / "model/config.json", id2label=..., label2id=..., num_labels=3)
    server = Served(start(tmp_path / "model"))
    wanted = label_scores(tmp_path / "model", REVIEWS, LIMIT)
    for found, expected in zip(server.classify(REVIEWS), wanted, strict=True):
        assert found == pytest.approx(expected, abs=1e-3)


def test_b057_labels_may_be_listed_in_any_order(folders, start, tmp_path, classifier):
    shutil.copytree(folders["classify"], tmp_path / "model")
    edit_json(tmp_path / "model/config.json", id2label={"2": "fear", "0": "joy", "1": "anger"})
    found = Served(start(tmp_path / "model")).classify(REVIEWS)
    assert [pytest.approx(row, abs=1e-6) for row in classifier.classify(REVIEWS)] == found


def test_b058_a_text_longer_than_the_model_reads_is_classified(classifier):
    long, short = classifier.classify(["tea " * 700, "short"])
    assert short == pytest.approx(classifier.classify("short")[0], abs=1e-5)
    assert sum(long.values()) == pytest.approx(1.0, abs=1e-4)
