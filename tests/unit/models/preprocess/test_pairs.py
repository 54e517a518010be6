"""Pairs: how two texts share the room, the query before all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

import tiny
from infinity_emb.errors import InvalidInputError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.template import share
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import TextOptions

QUERY = "what is the capital of peru ?"
LONG = "padding " * 1500


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.tiny_bert(tmp_path_factory.mktemp("pairs"), labels=("relevant",))


@pytest.fixture(scope="module")
def made(folder):
    return TextPreprocessor(read_spec(Checkpoint(folder, str(folder), "local folder")))


def test_a_short_query_survives_whole_beside_a_long_document(made):
    short, long = made.pairs(QUERY, ["answer text", LONG + "answer text"])
    assert not short.truncated
    assert long.truncated
    assert long.cost == 64
    query = made.texts([QUERY])[0].token_ids.tolist()
    assert long.token_ids.tolist()[: len(query)] == query


def test_two_long_texts_get_half_each(made):
    (long,) = made.pairs(LONG, [LONG])
    assert long.type_ids.tolist().count(1) == 32  # 31 of 61 words and the last special token
    assert long.cost == 64


@pytest.fixture(scope="module")
def tokenizer(folder):
    loaded = Tokenizer.from_file(str(folder / "tokenizer.json"))
    loaded.no_padding()
    return loaded


@given(first=st.integers(0, 90), second=st.integers(0, 90), room=st.integers(1, 61))
def test_the_share_is_that_of_the_tokenizers_library(first, second, room, tokenizer):
    tokenizer.enable_truncation(room + 3, strategy="longest_first")
    types = tokenizer.encode("tea " * first, "hot " * second).type_ids
    kept = (types.count(0) - 2, types.count(1) - 1)
    assert kept == (share(first, second, room) if first + second > room else (first, second))


@given(first=st.integers(0, 200), second=st.integers(0, 200), room=st.integers(0, 100))
def test_what_does_not_fit_fills_the_room_and_nothing_grows(first, second, room):
    if first + second > room:
        kept_first, kept_second = share(first, second, room)
        assert kept_first + kept_second == room
        assert kept_first <= first
        assert kept_second <= second


def test_both_texts_are_cut_on_the_side_that_is_asked_for(made):
    text = "alpha " + "filler " * 100 + "omega"
    (left,) = made.pairs(text, [text], TextOptions(truncation_side="left"))
    (right,) = made.pairs(text, [text], TextOptions(truncation_side="right"))
    alpha, omega = (made.texts([word])[0].token_ids.tolist()[1] for word in ("alpha", "omega"))
    assert (left.token_ids.tolist().count(omega), left.token_ids.tolist().count(alpha)) == (2, 0)
    assert (right.token_ids.tolist().count(omega), right.token_ids.tolist().count(alpha)) == (0, 2)


def test_a_pair_that_is_too_long_is_refused_by_name(made):
    options = TextOptions(truncate=False)
    with pytest.raises(InvalidInputError, match=r"documents\[1\] has more than \d+ tokens.*64") as caught:
        made.pairs(QUERY, ["short", LONG], options)
    assert caught.value.param == "documents[1]"
    with pytest.raises(InvalidInputError, match=r"input\[0\]"):
        made.text_pairs([(QUERY, LONG)], options)


@pytest.mark.parametrize("bad", ["half \ud83d", None, 7])
def test_a_query_or_document_that_is_no_text_is_refused_by_name(bad, made):
    with pytest.raises(InvalidInputError, match=r"query\[0\]"):
        made.pairs(bad, ["ok"], TextOptions(prompt="search "))
    with pytest.raises(InvalidInputError, match=r"query\[0\]"):
        made.pairs(bad, ["ok"])
    with pytest.raises(InvalidInputError, match=r"documents\[1\]"):
        made.pairs("ok", ["ok", bad])
    with pytest.raises(InvalidInputError, match=r"input\[1\]"):
        made.text_pairs([("ok", "ok"), ("ok", bad)])


def test_empty_texts_and_no_documents_are_fine(made):
    assert made.pairs(QUERY, []) == []
    assert made.pairs("", [""])[0].token_ids.tolist() == [2, 3, 3]


def test_a_prompt_goes_before_the_query_alone(made):
    options = TextOptions(prompt="search the ")
    asked = made.pairs("text", ["tea"], options)[0].token_ids.tolist()
    assert asked == made.pairs("search the text", ["tea"])[0].token_ids.tolist()
    assert asked == made.text_pairs([("text", "tea")], options)[0].token_ids.tolist()
