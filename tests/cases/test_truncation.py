"""Cases about texts that are longer than the model reads."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cases.reference import encode, pair_logits
from cases.served import Served, cosines, message_of, vectors_of
from tiny import tiny_roberta, tiny_xlm_roberta

LIMIT = 64  # tokens, special ones included
LONG = "word " * 2000


def test_b021_a_long_text_has_one_vector_however_it_is_sent(embedder):
    alone, listed, second = embedder.embed(LONG)[0], embedder.embed([LONG])[0], embedder.embed(["short", LONG])[1]
    assert cosines(alone, listed) >= 0.9999
    assert cosines(alone, second) >= 0.9999


def test_b022_by_default_the_first_tokens_count_and_usage_says_how_many(embedder, folders):
    text = " ".join(f"{word} {number}" for number, word in enumerate(["alpha", "beta", "gamma", "tea"] * 180))
    answer = embedder.post("/v1/embeddings", input=text)
    np.testing.assert_allclose(vectors_of(answer), encode(folders["embed"], [text]), atol=1e-5)
    usage = answer.json()["usage"]
    assert usage["prompt_tokens"] == LIMIT
    assert usage["truncated_items"] == [0]
    assert answer.headers["x-truncated"] == "1"


def test_b022_a_cut_text_equals_the_part_that_fits(embedder):
    fitting = " ".join(["alpha"] * (LIMIT - 2))
    answer = embedder.post("/v1/embeddings", input=fitting)
    assert "x-truncated" not in answer.headers
    np.testing.assert_allclose(embedder.embed(fitting + " beta" * 1400), vectors_of(answer), atol=1e-6)


def test_b023_the_end_is_cut_off_not_the_beginning(embedder):
    first, second = "alpha beta gamma" + " filler" * 2000, "omega psi chi" + " filler" * 2000
    cut = "alpha beta gamma" + " filler" * (LIMIT - 2 - 3)
    np.testing.assert_allclose(embedder.embed(first), embedder.embed(cut), atol=1e-6)
    assert cosines(embedder.embed(first)[0], embedder.embed(second)[0]) < 0.9999


def test_b023_the_end_of_reranked_documents_is_cut_off(reranker, engines):
    query = "what is the capital"
    (tokens,) = engines["rerank"].tokenize([query], add_special_tokens=False)
    room = LIMIT - 3 - len(tokens)
    documents = ["alpha beta gamma" + " filler" * 2000, "alpha beta gamma" + " filler" * (room - 3)]
    long, cut = reranker.rerank(query, documents, raw_scores=True)
    other = reranker.rerank(query, ["omega psi chi" + " filler" * 2000], raw_scores=True)[0]
    assert long == pytest.approx(cut, abs=1e-5)
    assert abs(long - other) > 1e-3


def test_b023_the_other_side_is_cut_off_on_request(embedder):
    text = "filler " * 2000 + "omega psi chi"
    cut = "filler " * (LIMIT - 2 - 3) + "omega psi chi"
    vectors = embedder.embed(text, truncation_side="left")
    np.testing.assert_allclose(vectors, embedder.embed(cut), atol=1e-6)


@pytest.mark.parametrize("fields", [{}, {"truncate": None}, {"truncate": True}, {"truncate": "END"}])
def test_b026_truncation_is_on_unless_switched_off(embedder, fields):
    np.testing.assert_allclose(embedder.embed(LONG, **fields), embedder.embed(LONG), atol=1e-6)


@pytest.mark.parametrize(
    ("path", "fields", "field"),
    [
        ("/v1/embeddings", {"input": ["short", LONG], "truncate": False}, "input[1]"),
        ("/v1/embeddings", {"input": ["short", LONG], "truncate": "NONE"}, "input[1]"),
        ("/v1/embeddings", {"input": ["short", LONG], "truncation": False}, "input[1]"),
        ("/rerank", {"query": "q", "documents": ["short", LONG], "truncate": False}, "documents[1]"),
        ("/classify", {"input": ["short", LONG], "truncate": False}, "input[1]"),
    ],
)
def test_b026_truncation_off_is_a_refusal_with_item_and_counts(everything, path, fields, field):
    model = {"/v1/embeddings": "acme/embed", "/rerank": "acme/rerank", "/classify": "acme/classify"}[path]
    message = message_of(everything.post(path, model=model, **fields))
    assert field in message
    # a long text is not read to its end to be refused, so the number given may be a lower bound
    given = re.search(r"has (?:more than )?(\d+) tokens", message)
    assert given is not None
    assert int(given[1]) > LIMIT
    assert f"at most {LIMIT}" in message


def test_b026_the_refusal_of_a_text_just_too_long_has_its_exact_length(embedder):
    text = " ".join(["alpha"] * (LIMIT - 1))
    message = message_of(embedder.post("/v1/embeddings", input=text, truncate=False))
    assert f"has {LIMIT + 1} tokens" in message


@pytest.mark.parametrize("truncate", [True, False])
def test_b026_a_text_that_just_fits_is_served_either_way(embedder, truncate):
    text = " ".join(["alpha"] * (LIMIT - 2))
    assert embedder.post("/v1/embeddings", input=text, truncate=truncate).json()["usage"]["prompt_tokens"] == LIMIT


@pytest.fixture(scope="module", params=[tiny_roberta, tiny_xlm_roberta], ids=["roberta", "xlm_roberta"])
def offset_models(request, tmp_path_factory, start):
    """Models with two rows more in the table of positions than text can use; nothing states their longest input."""
    root = tmp_path_factory.mktemp("offset")
    options = {"embed": {}, "rerank": {"labels": ("yes",)}, "classify": {"labels": ("a", "b")}}
    found = {}
    for name, given in options.items():
        folder = request.param(root / name, **given)
        (folder / "tokenizer_config.json").write_text(
            (folder / "tokenizer_config.json").read_text().replace(f'"model_max_length": {LIMIT}', '"extra": 0')
        )
        found[name] = Served(start(folder))
    return found


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        ("embed", "/v1/embeddings", {"input": ["tea " * 600, "tea"]}),
        ("rerank", "/rerank", {"query": "tea", "documents": ["tea " * 600, "tea"]}),
        ("classify", "/classify", {"input": ["tea " * 600, "tea"]}),
    ],
)
def test_b027_positions_that_start_behind_the_padding_id_are_never_overrun(offset_models, name, path, body):
    server = offset_models[name]
    answer = server.post(path, **body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["truncated_items"] == [0]
    assert LIMIT < answer.json()["usage"]["prompt_tokens"] < LIMIT + 16
    short = {key: ["tea"] if isinstance(value, list) else value for key, value in body.items()}
    assert server.post(path, **short).status_code == 200


def test_b030_of_a_pair_the_longer_text_is_cut_as_the_reference_does(reranker, folders):
    query = "what is the capital of peru ?"
    documents = ["answer text", "padding " * 1500 + "answer text", "", "answer " * 40]
    logits = pair_logits(folders["rerank"], query, documents, LIMIT)
    np.testing.assert_allclose(reranker.rerank(query, documents, raw_scores=True), logits, atol=1e-4)


def test_b030_the_query_survives_a_long_document(reranker):
    document = "padding " * 1500
    one, other = (reranker.rerank(query, [document], raw_scores=True)[0] for query in ("green tea", "red berlin"))
    assert abs(one - other) > 1e-3


def test_b030_a_long_query_leaves_room_as_the_reference_does(reranker, folders):
    query, documents = "capital of peru " * 60, ["lima is the capital of peru .", "tea " * 100]
    logits = pair_logits(folders["rerank"], query, documents, LIMIT)
    np.testing.assert_allclose(reranker.rerank(query, documents, raw_scores=True), logits, atol=1e-4)
