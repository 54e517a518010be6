"""Only what survives truncation is tokenized, and nobody can tell from the result."""

from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

import texts
import tiny
from infinity_emb.errors import InvalidInputError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess import boundary
from infinity_emb.models.preprocess.encoder import Encoder
from infinity_emb.models.preprocess.surviving import Kept, SurvivingEncoder
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import TextOptions

SIDES = ("left", "right")
# What is odd at a cut: marks that join, spaces of every kind, things that normalizers drop, tokens written by hand.
ATOMS = [
    *texts.ODD[:-1],
    *(f"{space}{mark}" for space in (" ", "  ", "\n", "\r\n", "\t ", "\u00a0", "\u2028", "\u200b") for mark in ("", "\u0308", "\u200d")),
    *("a", "é", "e\u0301", "\ufc5e", "\u0d4e", "\u00ad", "ﬁ", "①", "\u00a8", "'s", "'", "12", "1 000", "▁", "▁▁", "``", "''"),
    *("<mask>", " <mask> ", "[MASK]", "  [MASK]", "<new>", " <new>", "<new>  ", "x<new>", "<word>", "<wordy>", "wordend"),
    *("世界", "世 界", "\uff0c", "。", "世\uff0c界", "한국어", "\u1100\u1161", "नमस्ते ", "Σς ", "İ", "ß ", "x" * 120, " y" * 40, "\x00", "\x1c"),
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(ATOMS) | st.text(max_size=6), min_size=20, max_size=120).map("".join)


def qwen_like(tokenizer):
    split = pre_tokenizers.Split(Regex(min(boundary._SPLIT_PATTERNS)), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.normalizer = normalizers.NFC()


def prefix_space(tokenizer):
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)


def metaspace(scheme):
    def change(tokenizer):
        tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme=scheme)

    return change


def digits(tokenizer):
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Whitespace()]
    )


def strips(tokenizer):
    tokenizer.normalizer = normalizers.Sequence([normalizers.Strip(left=True, right=True), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")


KINDS = {
    **{name: (name, None) for name in ("bert", "roberta", "deberta_v2", "xlm_roberta", "albert", "modernbert", "mpnet")},
    "qwen-like": ("modernbert", qwen_like),
    "prefix space": ("roberta", prefix_space),
    **{f"metaspace {scheme}": ("xlm_roberta", metaspace(scheme)) for scheme in ("always", "first", "never")},
    "digits": ("bert", digits),
    "strips": ("xlm_roberta", strips),
}  # fmt: skip


@cache
def encoder_of(kind, folder):
    family, change = KINDS[kind]
    path = folder / kind.replace(" ", "-")
    tokenizer = Tokenizer.from_file(str(tiny.tiny(family, path) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    if change is not None:
        change(tokenizer)
    tokenizer.add_tokens([AddedToken("<new>", lstrip=True, rstrip=True), AddedToken("<word>", single_word=True)])
    tokenizer.add_tokens([AddedToken("wordend", normalized=True, single_word=True)])
    return Encoder(tokenizer, tokenizer.get_vocab_size())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kinds")


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS, data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_every_cut_that_is_allowed_gives_the_tokens_of_the_whole_text(kind, text, data, folder):
    encoder = encoder_of(kind, folder)
    whole = encoder.encode([text], "input")[0]
    start, end = boundary.learn_boundaries(encoder.tokenizer)
    assert start is not None
    places = [match.start() for match in start.finditer(text)]
    if places:
        place = data.draw(st.sampled_from(places))
        kept = encoder.encode([text[:place]], "input")[0]
        assert kept == whole[: len(kept)]
    places = [match.start() for match in end.finditer(text)] if end is not None else []
    if places:
        place = data.draw(st.sampled_from(places))
        kept = encoder.encode([text[place:]], "input")[0]
        assert not kept or kept == whole[-len(kept) :]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("left", [False, True])
def test_texts_of_all_lengths_keep_what_tokenizing_everything_keeps(kind, left, folder):
    encoder = encoder_of(kind, folder)
    surviving = SurvivingEncoder(encoder)
    chance = random.Random(3)
    sample = [
        "".join(chance.choices([*texts.ODD, *texts.sample_words(chance, 30), " ", "\n"], k=n)) for n in range(0, 400, 9)
    ]
    for needed in (1, 7, 30):
        for text, kept in zip(sample, surviving.encode(sample, needed, "input", left=left), strict=True):
            ids = encoder.encode([text], "input")[0]
            assert len(kept.ids) >= min(needed, len(ids))
            assert kept.ids == (ids[len(ids) - len(kept.ids) :] if left else ids[: len(kept.ids)])
            assert not kept.whole or kept.ids == ids


class _Counting:
    """Counts the characters that reach the tokenizer."""

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer
        self.characters = 0

    def encode_batch_fast(self, batch, **options):
        self.characters += sum(map(len, batch))
        return self._tokenizer.encode_batch_fast(batch, **options)

    def __getattr__(self, name):
        return getattr(self._tokenizer, name)


MEGABYTES = {
    "English": "The quick brown fox jumps over the lazy dog, twice a day. " * 90_000,
    "Chinese": "人工智能\uff0c你好世界。" * 500_000,
    "long words": ("pneumono" * 20 + " ") * 31_000,
}


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta_v2", "modernbert", "xlm_roberta"])
@pytest.mark.parametrize("side", SIDES)
def test_five_megabytes_cost_no_more_than_their_first_tokens(kind, side, tmp_path, record_property):
    made = TextPreprocessor(read_spec(Checkpoint(tiny.tiny(kind, tmp_path), "tiny", "local folder")))
    counting = made._encoder.tokenizer = _Counting(made._encoder.tokenizer)
    text = MEGABYTES["English"]
    (features,) = made.texts([text], TextOptions(truncation_side=side))
    record_property("characters", counting.characters)
    assert counting.characters <= 4_000
    cut = text[:4_000] if side == "right" else text[-4_000:]
    (expected,) = made.texts([cut], TextOptions(truncation_side=side))
    assert features.token_ids.tolist() == expected.token_ids.tolist()
    assert features.truncated


@pytest.mark.parametrize(
    ("kind", "name", "most"),
    [("bert", "Chinese", 4_000), ("modernbert", "Chinese", 4_000), ("bert", "long words", 40_000)],
)
def test_texts_without_spaces_and_words_without_end_are_cut_too(kind, name, most, tmp_path):
    made = TextPreprocessor(read_spec(Checkpoint(tiny.tiny(kind, tmp_path), "tiny", "local folder")))
    counting = made._encoder.tokenizer = _Counting(made._encoder.tokenizer)
    (features,) = made.texts([MEGABYTES[name]])
    assert counting.characters <= most
    expected = made.texts([MEGABYTES[name][: 2 * most]])[0]
    assert features.token_ids.tolist() == expected.token_ids.tolist()


def test_a_text_without_any_boundary_is_read_as_a_whole_once(tmp_path):
    made = TextPreprocessor(read_spec(Checkpoint(tiny.tiny_bert(tmp_path), "tiny", "local folder")))
    counting = made._encoder.tokenizer = _Counting(made._encoder.tokenizer)
    (features,) = made.texts(["!?" * 100_000])
    assert counting.characters == 200_000
    assert features.truncated


@pytest.mark.parametrize(
    "change",
    [
        lambda t: setattr(t, "pre_tokenizer", None),
        lambda t: setattr(t, "normalizer", normalizers.Replace(" ", "▁")),
        lambda t: setattr(t, "normalizer", normalizers.Replace(Regex("a b"), "")),
        lambda t: setattr(t, "pre_tokenizer", pre_tokenizers.Metaspace(split=False)),
        lambda t: setattr(t, "pre_tokenizer", pre_tokenizers.Split(Regex("[aeiou] .*"), "isolated")),
        lambda t: setattr(t, "pre_tokenizer", pre_tokenizers.CharDelimiterSplit("|")),
        lambda t: t.add_tokens(["two words"]),
    ],
)  # fmt: skip
def test_a_tokenizer_about_which_nothing_is_proven_reads_everything(change, tmp_path):
    tokenizer = Tokenizer.from_file(str(tiny.tiny_bert(tmp_path) / "tokenizer.json"))
    tokenizer.no_truncation()
    change(tokenizer)
    assert boundary.learn_boundaries(tokenizer) == boundary.NOWHERE
    assert SurvivingEncoder(Encoder(tokenizer, 400)).encode(["tea " * 900], 5, "input", left=False)[0].whole


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("side", SIDES)
def test_pairs_of_long_texts_share_the_room_as_if_both_were_read(kind, side, tmp_path):
    made = TextPreprocessor(read_spec(Checkpoint(tiny.tiny(kind, tmp_path, labels=("yes",)), "tiny", "local folder")))
    reading_all = TextPreprocessor(made._spec)
    reading_all._surviving.encode = lambda given, needed, name, *, left, positions=None: [  # noqa: ARG005
        Kept(ids, whole=True) for ids in reading_all._encoder.encode(given, name, positions)
    ]
    long = {length: "tea coffee " * length for length in (3, 30, 300, 900, 901)}
    for limit in (20, 21):
        options = TextOptions(max_length=limit, truncation_side=side)
        for query in long.values():
            ours, theirs = (one.pairs(query, list(long.values()), options) for one in (made, reading_all))
            assert [one.token_ids.tolist() for one in ours] == [one.token_ids.tolist() for one in theirs]
            assert [one.truncated for one in ours] == [one.truncated for one in theirs]


def test_refusing_to_cut_a_very_long_text_gives_a_lower_bound(tmp_path):
    made = TextPreprocessor(read_spec(Checkpoint(tiny.tiny_bert(tmp_path), "tiny", "local folder")))
    with pytest.raises(InvalidInputError, match=r"input\[0\] has more than \d+ tokens.*at most 64"):
        made.texts([MEGABYTES["English"]], TextOptions(truncate=False))
