"""Texts and token ids become features: truncation, prompts, ids, and inputs that are no text."""

from __future__ import annotations

import pytest

import texts
import tiny
from infinity_emb.errors import CheckpointError, InvalidInputError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import TextOptions

LONG = "capital " * 200
BEGIN, END = 2, 3  # [CLS] and [SEP] of the tiny WordPiece vocabulary


def preprocessor(folder):
    return TextPreprocessor(read_spec(Checkpoint(folder, str(folder), "local folder")))


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    prompts = {"query": "search : ", "passage": "doc : ", "s2s": "same : "}
    return preprocessor(tiny.tiny_bert(tmp_path_factory.mktemp("bert"), prompts=prompts))


def ids(preprocessor, inputs, **options):
    return [made.token_ids.tolist() for made in preprocessor.texts(inputs, TextOptions(**options))]


def refused(reason, param, call, *arguments, **options):
    with pytest.raises(InvalidInputError, match=reason) as caught:
        call(*arguments, TextOptions(**options))
    assert caught.value.param == param


def test_a_stored_limit_and_padding_do_not_leak(bert):
    # the tiny tokenizer.json says "cut at 16, pad to 16", as published files do
    short, long = bert.texts(["tea is hot", "tea " * 30])
    assert (short.cost, long.cost) == (5, 32)
    assert not short.truncated
    assert not long.truncated


def test_the_empty_text_is_its_special_tokens_and_white_space_is_sent_as_it_is(bert):
    assert ids(bert, ["", "   ", "alpha"])[:2] == [[BEGIN, END]] * 2
    roberta_like = ids(bert, [" tea ", "tea"])
    assert roberta_like[0] == roberta_like[1]  # this tokenizer ignores spaces; the next test has one that does not


def test_leading_spaces_reach_a_tokenizer_that_sees_them(tmp_path):
    made = preprocessor(tiny.tiny_roberta(tmp_path))
    assert ids(made, [" tea"]) != ids(made, ["tea"])


def test_an_item_alone_and_in_any_company_is_the_same(bert):
    sample = texts.sample(80)
    together = ids(bert, sample)
    assert together == [ids(bert, [text])[0] for text in sample]


def test_a_long_text_is_cut_to_its_first_tokens_and_says_so(bert):
    (made,) = bert.texts(["alpha beta gamma " + LONG])
    assert made.cost == 64
    assert made.truncated
    assert made.token_ids.tolist() == [*ids(bert, ["alpha beta gamma " + "capital " * 59])[0][:63], END]


def test_cutting_on_the_left_keeps_the_end(bert):
    (made,) = bert.texts(["alpha " + LONG + " omega"], TextOptions(truncation_side="left"))
    words = made.token_ids.tolist()
    assert (len(words), words[0], words[-1]) == (64, BEGIN, END)
    assert words[-2] == ids(bert, ["omega"])[0][1]
    assert ids(bert, ["alpha"])[0][1] not in words


def test_the_tokenizers_own_side_is_used_unless_another_is_asked_for(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.edit_json(folder / "tokenizer_config.json", truncation_side="left")
    made = preprocessor(folder)
    text = "alpha " + LONG + " omega"
    assert ids(made, [text]) == ids(made, [text], truncation_side="left")
    assert ids(made, [text]) != ids(made, [text], truncation_side="right")


@pytest.mark.parametrize(("length", "truncated"), [(61, False), (62, False), (63, True), (64, True)])
def test_the_limit_counts_special_tokens(length, truncated, bert):
    (made,) = bert.texts(["tea " * length])
    assert made.truncated is truncated
    assert made.cost == min(length + 2, 64)


def test_a_lower_limit_can_be_asked_for_but_not_a_higher_one(bert):
    assert bert.texts([LONG], TextOptions(max_length=10))[0].cost == 10
    assert bert.texts([LONG], TextOptions(max_length=1000))[0].cost == 64
    refused("3 to 64", "max_length", bert.texts, ["tea"], max_length=2)


def test_refusing_to_cut_names_item_length_and_limit(bert):
    refused(r"input\[1\] has 202 tokens.*64", "input[1]", bert.texts, ["tea", LONG, "tea"], truncate=False)
    assert bert.texts(["tea " * 62], TextOptions(truncate=False))[0].cost == 64


@pytest.mark.parametrize("bad", ["bad \ud83d tail", "\udc00"])
def test_half_a_character_is_refused_by_name(bad, bert):
    refused(r"input\[2\]: character \d+ is half of a surrogate pair", "input[2]", bert.texts, ["ok", [5], bad])
    assert len(bert.texts(["ok"])) == 1


def test_nul_and_odd_characters_are_read(bert):
    for made in bert.texts(list(texts.ODD)):
        assert made.cost >= 2
        assert made.token_ids.max() < 252


@pytest.mark.parametrize("bad", [None, 5, 1.5, {"text": "x"}, b"bytes"])
def test_what_is_neither_text_nor_ids_is_refused_by_name(bad, bert):
    refused(r"input\[1\]: expected a text or a list of token ids", "input[1]", bert.texts, ["ok", bad])


def test_token_ids_are_fed_as_they_are(bert):
    given = [[BEGIN, 27, 110, END], [27], [0, 251]]
    assert ids(bert, given) == given
    assert ids(bert, ["tea", [27, 28], "hot"]) == [*ids(bert, ["tea"]), [27, 28], *ids(bert, ["hot"])]


@pytest.mark.parametrize("bad", [999_999_999, 252, -1, 2**70, 1.0, True, "7"])
def test_ids_outside_the_vocabulary_are_refused_with_the_range(bad, bert):
    refused(r"input\[1\]: .* 0 to 251", "input[1]", bert.texts, [[5], [5, bad]])


def test_no_ids_are_refused(bert):
    refused("empty", "input[0]", bert.texts, [[]])


def test_long_ids_are_cut_or_refused_like_texts(bert):
    content = list(range(10, 110))
    assert ids(bert, [[BEGIN, *content, END]]) == [[BEGIN, *content[:62], END]]
    assert ids(bert, [[BEGIN, *content, END]], truncation_side="left") == [[BEGIN, *content[-62:], END]]
    assert ids(bert, [content]) == [content[:64]]
    assert ids(bert, [content], truncation_side="left") == [content[-64:]]
    assert bert.texts([content])[0].truncated
    refused(r"input\[0\] has 100 tokens", "input[0]", bert.texts, [content], truncate=False)


@pytest.mark.parametrize(
    ("options", "prompt"),
    [
        ({}, ""),
        ({"prompt": "do : "}, "do : "),
        ({"prompt_name": "query"}, "search : "),
        ({"prompt_name": "document"}, ""),
        ({"input_type": "query"}, "search : "),
        ({"input_type": "document"}, "doc : "),
        ({"prompt_name": "s2s", "input_type": "query"}, "same : "),
        ({"prompt": "do : ", "prompt_name": "query", "input_type": "document"}, "do : "),
        ({"prompt": "", "prompt_name": "query"}, ""),
    ],
)
def test_which_prompt_goes_first(options, prompt, bert):
    assert bert.resolve_prompt(TextOptions(**options)) == prompt
    assert ids(bert, ["tea is hot"], **options) == ids(bert, [prompt + "tea is hot"])


def test_the_default_prompt_applies_until_it_is_switched_off(tmp_path):
    prompts = {"ask": "search : "}
    made = preprocessor(tiny.tiny_bert(tmp_path, prompts=prompts, default_prompt_name="ask"))
    assert ids(made, ["tea"]) == ids(made, ["search : tea"], prompt="")
    assert ids(made, ["tea"], prompt="") != ids(made, ["tea"])
    assert ids(made, ["tea"], input_type="document") == ids(made, ["tea"], prompt="")
    assert ids(made, [[5, 6]]) == [[5, 6]]


def test_an_unknown_prompt_name_lists_the_known_ones(bert):
    refused("'nope'.*'query', 'passage', 's2s'", "prompt_name", bert.texts, ["tea"], prompt_name="nope")


def test_prompt_tokens_are_counted_only_where_pooling_leaves_them_out(tmp_path, bert):
    assert bert.texts(["tea"], TextOptions(prompt_name="query"))[0].prompt_tokens == 0
    folder = tiny.tiny_bert(tmp_path, prompts={"query": "search : "}, include_prompt=False)
    made = preprocessor(folder).texts(["tea", [5, 6], ""], TextOptions(prompt_name="query"))
    assert [one.prompt_tokens for one in made] == [3, 0, 3]  # [CLS] search :
    assert [one.prompt_tokens for one in preprocessor(folder).texts(["tea"])] == [0]


def test_type_ids_appear_only_where_they_are_not_all_zero(bert):
    assert bert.texts(["tea"])[0].type_ids is None
    (made,) = bert.pairs("tea", ["hot"])
    assert made.type_ids.tolist() == [0, 0, 0, 1, 1]


def test_a_tokenizer_with_more_tokens_than_the_model_names_the_item(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.edit_json(folder / "config.json", vocab_size=200)
    made = preprocessor(folder)
    assert ids(made, ["a"])
    word = next(text for text in texts.sample() if max(ids(made_bert(tmp_path), [text])[0]) >= 200)
    refused(r"input\[1\]: it contains the token", "input[1]", made.texts, ["a", word])


def made_bert(tmp_path):
    return preprocessor(tiny.tiny_bert(tmp_path / "whole"))


def test_a_broken_tokenizer_is_named(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json") as caught:
        preprocessor(folder)
    assert caught.value.param == "tokenizer.json"


def test_a_limit_without_room_for_text_is_a_fault_of_the_checkpoint(tmp_path):
    with pytest.raises(CheckpointError, match="no room"):
        preprocessor(tiny.tiny_bert(tmp_path, max_seq_length=2))


def test_a_token_that_only_the_settings_list_is_known(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    row = {
        "content": "<new>",
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "single_word": False,
        "special": True,
    }
    tiny.edit_json(folder / "tokenizer_config.json", added_tokens_decoder={"252": row})
    tiny.edit_json(folder / "config.json", vocab_size=253)
    assert ids(preprocessor(folder), ["<new>"]) == [[BEGIN, 252, END]]
