"""A word of megabytes that becomes one unknown token is not looked into, and nobody can tell from the result."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

import tiny
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.encoder import Encoder
from infinity_emb.models.preprocess.endless import learn_shortening
from infinity_emb.models.preprocess.surviving import SurvivingEncoder
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import TextOptions

ENDLESS = "loremipsum7" * 460_000
# Runs near the limit of 100 characters and far above it, and what may stand at their ends.
RUNS = st.integers(90, 400).map(lambda count: ("teaHOT7x" * 50)[:count])
BESIDE = [
    " ",
    "",
    "\u0301",
    "[MASK]",
    "[mask]",
    "tea[MASK]",
    "-",
    "\u00ad",
    "\u200b",
    "世",
    "é",
    "İ",
    "ﬁ",
    "x",
    " tea ",
    "\n",
]
TEXTS = st.lists(RUNS | st.sampled_from(BESIDE), max_size=12).map("".join)


@cache
def wordpiece(folder, plain=False):
    tokenizer = Tokenizer.from_file(str(tiny.tiny_bert(folder) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if plain:
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("bert")


@pytest.mark.parametrize("plain", [False, True])
@given(text=TEXTS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_shortened_text_has_the_tokens_of_the_whole_one(plain, text, folder):
    tokenizer = wordpiece(folder, plain)
    short = learn_shortening(tokenizer)(text)
    assert len(short) <= len(text)
    assert tokenizer.encode(short).ids == tokenizer.encode(text).ids


@pytest.mark.parametrize("left", [False, True])
def test_texts_with_endless_words_keep_what_tokenizing_everything_keeps(left, folder):
    encoder = Encoder(wordpiece(folder), 400)
    surviving, chance = SurvivingEncoder(encoder), random.Random(3)
    parts = ["tea is hot ", "x" * 3_000, "lima, ", "peru" * 900, "[MASK]", " ", "é"]
    sample = ["".join(chance.choices(parts, k=count)) for count in range(1, 40)]
    for needed in (1, 7, 30):
        for text, kept in zip(sample, surviving.encode(sample, needed, "input", left=left), strict=True):
            ids = encoder.encode([text], "input")[0]
            assert len(kept.ids) >= min(needed, len(ids))
            assert kept.ids == (ids[len(ids) - len(kept.ids) :] if left else ids[: len(kept.ids)])
            assert not kept.whole or kept.ids == ids


@pytest.mark.parametrize("text", [ENDLESS, f"tea {ENDLESS}", f"{ENDLESS} tea"])
def test_a_word_of_five_megabytes_hardly_reaches_the_tokenizer(text, folder):
    made = TextPreprocessor(read_spec(Checkpoint(tiny.tiny_bert(folder), "tiny", "local folder")))
    seen = []
    encode = made._encoder.encode
    made._encoder.encode = lambda texts, *more: seen.extend(map(len, texts)) or encode(texts, *more)
    (features,) = made.texts([text], TextOptions())
    assert sum(seen) < 1_000
    unknown = made._encoder.tokenizer.token_to_id("[UNK]")
    assert (features.token_ids == unknown).sum() == 1
    assert features.truncated is False


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.add_tokens([AddedToken("tea")]),
        lambda t: setattr(t, "normalizer", normalizers.Replace(Regex("a+"), "a")),
        lambda t: setattr(t, "pre_tokenizer", pre_tokenizers.Digits()),
        lambda t: setattr(t, "pre_tokenizer", None),
        lambda t: t.add_tokens([AddedToken("[" + "a" * 80 + "]")]),
    ],
)
def test_nothing_is_shortened_where_it_is_not_proven(change, folder):
    tokenizer = Tokenizer.from_file(str(tiny.tiny_bert(folder) / "tokenizer.json"))
    assert learn_shortening(tokenizer) is not None
    change(tokenizer)
    assert learn_shortening(tokenizer) is None


@pytest.mark.parametrize("kind", ["roberta", "xlm_roberta"])
def test_other_models_look_into_every_word(kind, tmp_path):
    assert learn_shortening(Tokenizer.from_file(str(tiny.tiny(kind, tmp_path) / "tokenizer.json"))) is None
