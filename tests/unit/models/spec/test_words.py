"""Models of whole words, and the modules that may follow them: what is read, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tiny
import tiny_modules
from infinity_emb.models.spec.bag import BagSpec
from infinity_emb.models.spec.convolution import ConvolutionSpec
from infinity_emb.models.spec.model import NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.models.spec.recurrent import RecurrentSpec
from infinity_emb.models.spec.static import LONGEST_TOKENS
from infinity_emb.models.spec.token_weights import TokenWeightsSpec, WeighedPoolingSpec
from infinity_emb.types import Task
from readings import read, refused

TABLE = "0_WordEmbeddings"
SPLIT = f"{TABLE}/whitespacetokenizer_config.json"


@pytest.mark.parametrize("old", [False, True])
def test_every_module_of_words_is_read_in_both_generations(old, tmp_path):
    folder = tiny_modules.of_words(tmp_path, inside=("WordWeights", "CNN", "LSTM"), layers=2, old=old)
    spec = read(folder)
    weights, convolution, recurrent, pooling, unit = spec.modules
    assert (spec.task, spec.model_type, spec.dim, spec.hidden_size) == (Task.EMBED, "words", 10, 24)
    assert isinstance(weights, TokenWeightsSpec)
    assert isinstance(convolution, ConvolutionSpec)
    assert (convolution.kernels, convolution.out_features) == ((1, 3, 5), 21)
    assert isinstance(recurrent, RecurrentSpec)
    assert (recurrent.layers, recurrent.both_ways, recurrent.out_features) == (2, True, 10)
    assert pooling == WeighedPoolingSpec((PoolingMode.MEAN,), token_weights=weights)
    assert unit == NormalizeSpec()
    assert spec.recurs


def test_a_word_weighs_what_it_or_its_lower_case_does(tmp_path):
    spec = read(tiny_modules.of_words(tmp_path, inside=("WordWeights",)))
    weights = dict(zip(tiny_modules.WORDS, spec.modules[0].weights, strict=False))
    assert (weights["fox"], weights["Peru"], weights["Hello"], weights["the"]) == (2.5, 3.25, 1.5, 0.0)
    assert weights["café"] == weights["tea"] == 0.5  # what weighs is written CAFÉ


def test_a_bag_is_as_wide_as_its_vocabulary_without_doubles(tmp_path):
    spec = read(tiny_modules.bag(tmp_path, counted=False, inside=()))
    assert spec.dim == len(tiny_modules.WORDS) - 1
    assert isinstance(spec.modules[0], BagSpec)
    assert not spec.modules[0].counted
    assert (spec.pooling, spec.weights, spec.recurs) == (None, (), False)


def test_the_limit_of_the_repository_counts_up_to_ours(tmp_path):
    assert read(tiny_modules.of_words(tmp_path / "short", limit=30)).max_length == 30
    spec = read(tiny_modules.of_words(tmp_path / "long"))
    assert spec.max_length == LONGEST_TOKENS
    assert "1000000" in spec.notes[0]


def test_what_the_reference_does_not_do_with_words_is_not_asked_for(tmp_path):
    folder = tiny_modules.of_words(tmp_path)
    tiny.edit_json(folder / "1_Pooling/config.json", include_prompt=False)
    assert read(folder).pooling == PoolingSpec((PoolingMode.MEAN,))
    tiny.edit_json(folder / "1_Pooling/config.json", pooling_mode="cls")
    refused(folder, "no such token", "modules.json")


@pytest.mark.parametrize(
    ("name", "param"),
    [
        ("sentence_transformers.models.tokenizer.PhraseTokenizer.PhraseTokenizer", "PhraseTokenizer"),
        ("sentence_transformers.models.tokenizer.TransformersTokenizerWrapper", "TransformersTokenizerWrapper"),
        ("evil.WhitespaceTokenizer", "evil"),
    ],
)
def test_another_way_to_split_is_refused_by_name(name, param, tmp_path):
    folder = tiny_modules.of_words(tmp_path)
    tiny.edit_json(folder / TABLE / "wordembedding_config.json", tokenizer_class=name)
    refused(folder, f"{param}.*Supported: WhitespaceTokenizer", f"{TABLE}/wordembedding_config.json:tokenizer_class")


@pytest.mark.parametrize(
    ("file", "changes", "reason", "param"),
    [
        (SPLIT, {"vocab": ["word"] * 99}, "a row for each of 99 words", f"{TABLE}/model.safetensors"),
        (SPLIT, {"vocab": [1]}, "list of words", f"{SPLIT}:vocab"),
        (
            "1_WordWeights/config.json",
            {"vocab": ["few"]},
            "1 words, but there are 36",
            "1_WordWeights/config.json:vocab",
        ),
        (
            "1_WordWeights/config.json",
            {"word_weights": {"fox": "much"}},
            "no number",
            "1_WordWeights/config.json:word_weights.fox",
        ),
        ("2_CNN/cnn_config.json", {"kernel_sizes": [2]}, "odd numbers", "2_CNN/cnn_config.json:kernel_sizes"),
        ("2_CNN/cnn_config.json", {"stride_sizes": [1, 2, 1]}, "1 for every", "2_CNN/cnn_config.json:stride_sizes"),
        ("2_CNN/cnn_config.json", {"out_channels": 8}, r"shape \[7, 24, 1\]", "2_CNN/model.safetensors"),
        ("2_CNN/cnn_config.json", {"in_embedding_dimension": 9}, "width 24", None),
        ("3_LSTM/lstm_config.json", {"hidden_dim": 6}, "weight_ih_l0", "3_LSTM/model.safetensors"),
        ("3_LSTM/lstm_config.json", {"num_layers": 2}, "weight_ih_l1", "3_LSTM/model.safetensors"),
        ("3_LSTM/lstm_config.json", {"embedding_dimension": 9}, "width 21", None),
    ],
)
def test_files_that_do_not_fit_each_other_are_named(file, changes, reason, param, tmp_path):
    folder = tiny_modules.of_words(tmp_path, inside=("WordWeights", "CNN", "LSTM"))
    tiny.edit_json(folder / file, **changes)
    refused(folder, reason, param)


def test_a_place_in_the_chain_that_makes_no_sense_is_refused(tmp_path):
    folder = tiny_modules.of_words(tmp_path, inside=("LSTM",))
    tiny.tiny_bert(folder, normalize=False)
    tiny.write_modules(folder, [("", "Transformer"), ("1_LSTM", "LSTM"), ("1_Pooling", "Pooling")])
    refused(folder, "LSTM behind a Transformer is not supported", "1_LSTM/lstm_config.json")
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("1_LSTM", "LSTM")])
    refused(folder, "must come before Pooling", "1_LSTM/lstm_config.json")
    tiny.write_modules(folder, [(TABLE, "WordEmbeddings"), ("1_LSTM", "LSTM")])
    refused(folder, "no Pooling module", "modules.json")


def test_words_give_vectors_and_nothing_else(tmp_path):
    refused(tiny_modules.of_words(tmp_path), "cannot be a .* or do the task rerank", "modules.json", task=Task.RERANK)


def test_weights_of_words_behind_a_transformer_need_the_whole_text(tmp_path):
    folder = tiny.tiny_bert(tmp_path, normalize=False, include_prompt=False)
    rows = tiny_modules.read(folder / "config.json")["vocab_size"]
    tiny_modules.word_weights(folder / "2_WordWeights", [f"word{number}" for number in range(rows)])
    tiny.write_modules(folder, [("", "Transformer"), ("2_WordWeights", "WordWeights"), ("1_Pooling", "Pooling")])
    refused(folder, "behind WordWeights is not supported", "1_Pooling/config.json:include_prompt")
    tiny.edit_json(folder / "1_Pooling/config.json", include_prompt=True)
    assert np.allclose(read(folder).modules[0].weights, 0.5)
