"""The question put to a language model that reranks: a cut takes from the document and from nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tiny
from infinity_emb.errors import InvalidInputError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.judge import JudgeSpec, Question
from infinity_emb.types import TextOptions

APART = Question("[CLS]", "query {query}", ":", "passage {document}", ("[SEP]", "{instruction}"), instruction="answer")
JOINED = replace(APART, query="{instruction} {query}", end=("[SEP] answer",), joined=True, between=" : ")


@pytest.fixture(params=[APART, JOINED], ids=["apart", "joined"])
def preprocessor(request, tmp_path):
    spec = read_spec(Checkpoint(tiny.tiny_bert(tmp_path), "some/judge", "local folder"))
    return make_preprocessor(replace(spec, judge=JudgeSpec(5, 6, request.param, "test"), max_length=20))


def words(preprocessor, features):
    return [" ".join(preprocessor.decode([item.token_ids.tolist()], skip_special_tokens=False)) for item in features]


def test_the_tail_survives_a_cut(preprocessor):
    short, long = preprocessor.pairs("tea", ["lima", "lima " * 50])
    first, second = words(preprocessor, [short, long])
    assert first.endswith("lima [SEP] answer")
    assert second.endswith("lima lima [SEP] answer")
    assert (short.truncated, long.truncated, long.cost) == (False, True, 20)


def test_the_prompt_of_a_request_is_the_instruction(preprocessor):
    (features,) = preprocessor.pairs("tea", ["lima"], TextOptions(prompt="search"))
    (text,) = words(preprocessor, [features])
    assert "search" in text


def test_pairs_are_read_one_by_one(preprocessor):
    both = preprocessor.text_pairs([("tea", "lima"), ("peru", "berlin")])
    alone = [preprocessor.pairs(*pair)[0] for pair in (("tea", ["lima"]), ("peru", ["berlin"]))]
    assert [item.token_ids.tolist() for item in both] == [item.token_ids.tolist() for item in alone]


@pytest.mark.parametrize(
    ("query", "documents", "options", "word"),
    [
        ("tea", ["lima"], TextOptions(truncation_side="left"), "'left' is not offered"),
        ("tea", ["lima " * 50], TextOptions(truncate=False), r"documents\[0\]"),
        ("tea", ["lima"], TextOptions(max_length=3), "no room for a document"),
        ("tea", [7], TextOptions(), r"documents\[0\]: expected a text"),
        (7, ["lima"], TextOptions(), "query: expected a text"),
    ],
)
def test_what_cannot_be_asked_is_refused(preprocessor, query, documents, options, word):
    with pytest.raises(InvalidInputError, match=word):
        preprocessor.pairs(query, documents, options)
