"""Token ids equal those of sentence-transformers, for every family, every odd text, alone and in pairs."""

from __future__ import annotations

import warnings

import pytest

import texts
import tiny
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import TextOptions

pytestmark = pytest.mark.parity
KINDS = sorted(tiny.ARCHITECTURES)
TEXTS = texts.sample()


def preprocessor(folder):
    return TextPreprocessor(read_spec(Checkpoint(folder, str(folder), "local folder")))


def reference(name, folder):
    """A model of the reference library; what it warns about while loading is not ours to judge."""
    import sentence_transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(sentence_transformers, name)(str(folder), device="cpu")


def rows(features):
    """Token ids and type ids of each row of a padded batch, padding taken off."""
    masks = features["attention_mask"].bool()
    ids = [row[mask].tolist() for row, mask in zip(features["input_ids"], masks, strict=True)]
    if "token_type_ids" not in features:
        return ids, None
    return ids, [row[mask].tolist() for row, mask in zip(features["token_type_ids"], masks, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_single_texts_get_the_token_ids_of_sentence_transformers(kind, tmp_path):
    folder = tiny.tiny(kind, tmp_path)
    ours = preprocessor(folder).texts(TEXTS)
    model = reference("SentenceTransformer", folder)
    if kind in {"roberta", "xlm_roberta", "mpnet"}:
        assert model.max_seq_length == tiny.POSITIONS  # from the tokenizer; the position table alone would say more
    expected, types = rows(model.preprocess(TEXTS))
    for text, made, wanted in zip(TEXTS, ours, expected, strict=True):
        assert made.token_ids.tolist() == wanted, text
        assert made.type_ids is None
    assert types is None or not any(map(any, types))
    assert sum(made.truncated for made in ours) > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", ["right", "left"])
def test_pairs_get_the_token_ids_of_the_cross_encoder(kind, side, tmp_path):
    folder = tiny.tiny(kind, tmp_path, labels=("relevant",))
    tiny.edit_json(folder / "tokenizer_config.json", truncation_side=side)
    pairs = list(zip(TEXTS, TEXTS[50:] + TEXTS[:50], strict=True))
    ours = preprocessor(folder).text_pairs(pairs)
    model = reference("CrossEncoder", folder)
    expected, types = rows(model.preprocess(pairs))
    for index, (made, wanted) in enumerate(zip(ours, expected, strict=True)):
        assert made.token_ids.tolist() == wanted, pairs[index]
        if made.type_ids is not None:
            assert types is not None
            assert made.type_ids.tolist() == types[index]
        elif types is not None:
            assert not any(types[index]) or not model.config.type_vocab_size


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta_v2"])
def test_one_query_with_many_documents_equals_pairs(kind, tmp_path):
    folder = tiny.tiny(kind, tmp_path, labels=("relevant",))
    made = preprocessor(folder)
    together = made.pairs("what is the capital of peru", TEXTS)
    apart = made.text_pairs([("what is the capital of peru", text) for text in TEXTS])
    assert [one.token_ids.tolist() for one in together] == [one.token_ids.tolist() for one in apart]


@pytest.mark.parametrize("kind", KINDS)
def test_do_lower_case_of_the_module_is_that_of_sentence_transformers(kind, tmp_path):
    folder = tiny.tiny(kind, tmp_path)
    tiny.edit_json(folder / "sentence_bert_config.json", do_lower_case=True, max_seq_length=40)
    expected, _ = rows(reference("SentenceTransformer", folder).preprocess(TEXTS))
    assert [made.token_ids.tolist() for made in preprocessor(folder).texts(TEXTS)] == expected


@pytest.mark.parametrize(
    "settings",
    [
        {"do_lower_case": False},
        {"do_lower_case": True, "strip_accents": False},
        {"tokenize_chinese_chars": False},
        {"do_lower_case": False, "tokenizer_class": ...},
        {"do_lower_case": False, "tokenizer_class": "PreTrainedTokenizerFast"},
    ],
)
def test_tokenizer_config_decides_about_bert_normalisation_as_in_transformers(settings, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.edit_json(folder / "tokenizer_config.json", **settings)
    expected, _ = rows(reference("SentenceTransformer", folder).preprocess(TEXTS))
    assert [made.token_ids.tolist() for made in preprocessor(folder).texts(TEXTS)] == expected


@pytest.mark.parametrize("spaced", [True, False])
def test_the_prefix_space_of_roberta_follows_tokenizer_config(spaced, tmp_path):
    folder = tiny.tiny_roberta(tmp_path)
    tiny.edit_json(folder / "tokenizer_config.json", add_prefix_space=spaced)
    expected, _ = rows(reference("SentenceTransformer", folder).preprocess(TEXTS))
    assert [made.token_ids.tolist() for made in preprocessor(folder).texts(TEXTS)] == expected


@pytest.mark.parametrize("ends", [{"add_eos_token": True}, {"add_bos_token": True, "add_eos_token": False}, {}])
def test_end_tokens_come_from_tokenizer_json_alone_as_in_transformers(ends, tmp_path):
    folder = tiny.tiny_modernbert(tmp_path)
    tiny.edit_json(folder / "tokenizer_config.json", bos_token="[CLS]", eos_token="[SEP]", **ends)
    expected, _ = rows(reference("SentenceTransformer", folder).preprocess(TEXTS))
    assert [made.token_ids.tolist() for made in preprocessor(folder).texts(TEXTS)] == expected


@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert"])
def test_prompts_and_their_token_counts_are_those_of_sentence_transformers(kind, tmp_path):
    folder = tiny.tiny(kind, tmp_path, prompts={"query": "search the text: "}, include_prompt=False)
    features = reference("SentenceTransformer", folder).preprocess(TEXTS, prompt="search the text: ")
    ours = preprocessor(folder).texts(TEXTS, TextOptions(prompt_name="query"))
    assert [made.token_ids.tolist() for made in ours] == rows(features)[0]
    assert {made.prompt_tokens for made in ours} == {features["prompt_length"]}
