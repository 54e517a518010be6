"""The longest input: what the repository says, capped by what the position table holds."""

from __future__ import annotations

import pytest

import tiny
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec

NO_LIMIT = 1000000000000000019884624838656


def longest(folder):
    return read_spec(Checkpoint(folder, str(folder), "local folder")).max_length


@pytest.mark.parametrize(
    ("kind", "stated", "declared", "expected"),
    [
        ("bert", None, 64, 64),
        ("bert", None, 48, 48),  # the tokenizer's limit
        ("bert", None, 512, 64),  # capped by the positions
        ("bert", None, NO_LIMIT, 64),
        ("bert", None, ..., 64),
        ("bert", 20, 48, 20),
        ("bert", 60, 48, 60),  # max_seq_length wins over the tokenizer
        ("bert", 512, 64, 64),  # the reference would read past the table
        ("roberta", None, NO_LIMIT, 64),  # 66 positions, 2 of them never used
        ("roberta", None, ..., 64),
        ("roberta", 66, 64, 64),
        ("xlm_roberta", None, ..., 64),
        ("mpnet", None, ..., 64),
        ("modernbert", None, ..., 256),
        ("modernbert", 1000, 256, 1000),  # rotary positions have no table to run over
        ("deberta_v2", None, ..., 64),
        ("deberta_v2", 100, 64, 100),
    ],
)
def test_the_longest_input(kind, stated, declared, expected, tmp_path):
    folder = tiny.tiny(kind, tmp_path, max_seq_length=stated)
    tiny.edit_json(folder / "tokenizer_config.json", model_max_length=declared)
    assert longest(folder) == expected


def test_a_tokenizer_argument_of_the_module_wins(tmp_path):
    folder = tiny.tiny_bert(tmp_path, max_seq_length=50)
    tiny.edit_json(folder / "sentence_bert_config.json", tokenizer_args={"model_max_length": 30})
    assert longest(folder) == 30


def test_a_plain_repository_does_not_read_module_options(tmp_path):
    folder = tiny.tiny_bert(tmp_path, modules=False)
    tiny.write_json(folder / "sentence_bert_config.json", {"max_seq_length": 8})
    assert longest(folder) == 64


def test_without_any_limit_one_is_assumed_and_noted(tmp_path):
    folder = tiny.tiny_modernbert(tmp_path)
    tiny.edit_json(folder / "tokenizer_config.json", model_max_length=...)
    tiny.edit_json(folder / "config.json", max_position_embeddings=-1)
    spec = read_spec(Checkpoint(folder, str(folder), "local folder"))
    assert spec.max_length == 512
    assert "512" in spec.notes[0]
