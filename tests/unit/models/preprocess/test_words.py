"""Whole words: which are found, where they stand, and what is left out."""

from __future__ import annotations

import pytest

import tiny
import tiny_modules
from infinity_emb.errors import CheckpointError, InvalidInputError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.models.preprocess.words import WordTokenizer
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.words import WordSplit
from infinity_emb.types import TextOptions


def read(folder):
    return make_preprocessor(read_spec(Checkpoint(folder, str(folder), "local folder")))


@pytest.fixture
def reader(tmp_path):
    return read(tiny_modules.of_words(tmp_path, limit=5000))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("quick fox", ["quick", "fox"]),
        ("(fox), «fox» fox!", ["fox", "fox"]),  # other quotation marks than those of ASCII stay
        ("Hello HELLO hello", ["Hello", "hello", "hello"]),
        ("World! world! WORLD! (World!)", ["World!", "world", "world", "world"]),
        ("UPPER upper Upper", ["UPPER"]),
        ("of OF (of) rank. Rank", []),  # stop words in any form
        ("nowhere ... ", []),
        ("tea\u2003coffee\x1cfox", ["tea", "coffee", "fox"]),  # every kind of white space
    ],
)
def test_a_piece_is_looked_up_as_it_is_then_bare_then_in_lower_case(text, words, reader):
    (features,) = reader.texts([text])
    found = [] if features.empty else [tiny_modules.WORDS[number] for number in features.token_ids]
    assert found == words


def test_text_in_lower_case_is_read_so_if_the_repository_says_it(tmp_path):
    reader = read(tiny_modules.of_words(tmp_path, lower=True))
    (features,) = reader.texts(["Hello Peru FOX"])
    assert [tiny_modules.WORDS[number] for number in features.token_ids] == ["hello", "fox"]


def test_a_text_without_words_or_with_none_that_weighs_is_empty(tmp_path):
    reader = read(tiny_modules.of_words(tmp_path, inside=("WordWeights",)))
    nothing, weightless, some = reader.texts(["", "the the", "the fox"])
    assert (nothing.empty, nothing.prompt_tokens, nothing.cost) == (True, 1, 1)
    assert (weightless.empty, weightless.prompt_tokens, weightless.cost) == (True, 0, 2)
    assert not some.empty


def test_tokens_are_shown_where_they_stand(reader):
    (tokens,) = reader.tokenize(["é (fox) nowhere World!"])
    assert [(token.text, token.start, token.stop) for token in tokens] == [("(fox)", 3, 8), ("World!", 17, 23)]
    assert reader.decode([[4, 9]]) == ["fox tea"]


@pytest.mark.parametrize("side", ["left", "right"])
def test_of_a_long_text_only_what_survives_is_read(side, reader):
    text = "nowhere fox (tea) of " * 20_000
    options = TextOptions(max_length=7, truncation_side=side)
    (cut,) = reader.texts([text], options)
    (whole,) = reader.texts(["fox (tea) " * 10], options)
    assert cut.truncated
    assert sorted(cut.token_ids) == sorted(whole.token_ids[::-1] if side == "left" else whole.token_ids)
    assert len(cut.token_ids) == 7


@pytest.mark.parametrize("text", [7, "half \ud800 a character"])
def test_what_is_no_text_is_named(text, reader):
    with pytest.raises(InvalidInputError) as caught:
        reader.texts(["fox", text])
    assert caught.value.param == "input[1]"


def test_a_broken_vocabulary_is_named(tmp_path):
    tiny.write_json(tmp_path / "words.json", {"vocab": 3})
    with pytest.raises(CheckpointError, match=r"words\.json"):
        WordTokenizer(WordSplit(tmp_path / "words.json"))
