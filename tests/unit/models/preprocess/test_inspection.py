"""Tokens shown to people: byte offsets that cut the text, special tokens that have none, and back to text."""

from __future__ import annotations

import pytest

import texts
import tiny
from infinity_emb.errors import InvalidInputError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import TokenInfo

KINDS = sorted(tiny.ARCHITECTURES)


def preprocessor(folder):
    return TextPreprocessor(read_spec(Checkpoint(folder, str(folder), "local folder")))


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_are_bytes_of_the_text_that_was_sent(kind, tmp_path):
    made = preprocessor(tiny.tiny(kind, tmp_path))
    for text, tokens in zip(texts.ODD, made.tokenize(texts.ODD), strict=True):
        raw = text.encode()
        for token in tokens:
            if token.special:
                assert token.start is token.stop is None
            else:
                assert raw[token.start : token.stop].decode() == token.text


def test_each_token_is_shown_with_number_text_and_place(tmp_path):
    made = preprocessor(tiny.tiny_bert(tmp_path))
    (tokens,) = made.tokenize(["Tea, é!"])
    assert [(token.text, token.special, token.start, token.stop) for token in tokens] == [
        ("[CLS]", True, None, None),
        ("Tea", False, 0, 3),
        (",", False, 3, 4),
        ("é", False, 5, 7),
        ("!", False, 7, 8),
        ("[SEP]", True, None, None),
    ]
    assert isinstance(tokens[0], TokenInfo)
    assert [token.id for token in tokens] == made.texts(["Tea, é!"])[0].token_ids.tolist()


def test_special_tokens_can_be_left_out_and_long_texts_are_shown_whole(tmp_path):
    made = preprocessor(tiny.tiny_bert(tmp_path))
    (tokens,) = made.tokenize(["tea " * 500], add_special_tokens=False)
    assert len(tokens) == 500
    assert not any(token.special for token in tokens)


def test_the_prompt_is_part_of_what_is_shown(tmp_path):
    made = preprocessor(tiny.tiny_bert(tmp_path, prompts={"query": "search "}))
    (tokens,) = made.tokenize(["tea"], prompt_name="query")
    assert [token.text for token in tokens][1:-1] == ["search", "tea"]
    assert tokens[2].start == 7


def test_decoding_gives_the_text_back(tmp_path):
    made = preprocessor(tiny.tiny_bert(tmp_path))
    ids = made.texts(["tea is hot"])[0].token_ids.tolist()
    assert made.decode([ids, []]) == ["tea is hot", ""]
    assert made.decode([ids], skip_special_tokens=False) == ["[CLS] tea is hot [SEP]"]


@pytest.mark.parametrize("bad", [252, -1, 2**40, 1.5])
def test_decoding_refuses_ids_outside_the_vocabulary(bad, tmp_path):
    made = preprocessor(tiny.tiny_bert(tmp_path))
    with pytest.raises(InvalidInputError, match=r"ids\[1\].*0 to 251"):
        made.decode([[5], [bad]])


def test_tokenizing_half_a_character_is_refused_by_name(tmp_path):
    with pytest.raises(InvalidInputError, match=r"input\[1\]"):
        preprocessor(tiny.tiny_bert(tmp_path)).tokenize(["ok", "\ud83d"])
