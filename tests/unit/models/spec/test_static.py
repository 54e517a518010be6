"""Static embeddings: both layouts, and what goes wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiny
import tiny_static
from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.model import DenseSpec, NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.models.spec.static import LONGEST_TOKENS
from infinity_emb.types import PoolingMethod, Task

MEAN = PoolingSpec((PoolingMode.MEAN,))


def read(folder, **options):
    return read_spec(Checkpoint(folder, str(folder), "local folder"), **options)


@pytest.mark.parametrize("place", ["", ".", "0_StaticEmbedding"])
def test_a_table_is_read_from_where_modules_json_says(place, tmp_path):
    spec = read(tiny_static.static(tmp_path, place=place))
    assert (spec.task, spec.model_type, spec.dim) == (Task.EMBED, "static", tiny_static.DIM)
    assert spec.modules == (MEAN, NormalizeSpec())
    assert spec.folder == tmp_path / place
    assert spec.max_length == LONGEST_TOKENS
    assert "65536" in " ".join(spec.notes)


def test_a_limit_in_the_tokenizer_file_is_kept(tmp_path):
    assert read(tiny_static.static(tmp_path, limit=12)).max_length == 12


def test_modules_behind_the_table_are_read(tmp_path):
    folder = tiny_static.static(tmp_path, modules=("Dense", "Normalize"))
    tiny.write_dense(folder / "1_Dense", tiny_static.DIM, 8, np.random.default_rng(0))
    spec = read(folder)
    assert [type(module) for module in spec.modules] == [PoolingSpec, DenseSpec, NormalizeSpec]
    assert spec.dim == 8


@pytest.mark.parametrize(
    ("config", "modules", "length"),
    [({}, (MEAN,), 512), ({"normalize": True, "max_length": 9}, (MEAN, NormalizeSpec()), 9)],
)
def test_model2vec_is_read_by_its_config(config, modules, length, tmp_path):
    spec = read(tiny_static.static(tmp_path, layout="model2vec", **config))
    assert (spec.modules, spec.max_length) == (modules, length)
    assert spec.static.characters is not None


def test_prompts_count_where_the_repository_has_some(tmp_path):
    folder = tiny_static.static(tmp_path)
    tiny.write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "ask: "}})
    assert read(folder).prompts == {"query": "ask: "}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
        (lambda folder: tiny.save_tensors(folder, {"other": np.zeros((2, 2))}, "float32"), "no table"),
        (lambda folder: tiny.write_modules(folder, [("", "StaticEmbedding"), ("", "Pooling")]), "second Pooling"),
        (lambda folder: tiny.write_modules(folder, [("", "StaticEmbedding"), ("", "SpladePooling")]), "SpladePooling"),
        (
            lambda folder: tiny.write_json(
                folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder"}
            ),
            "SparseEncoder",
        ),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer.json"),
    ],
)
def test_what_does_not_fit_is_refused(change, reason, tmp_path):
    folder = tiny_static.static(tmp_path)
    if reason == "second Pooling":
        tiny.write_json(folder / "config.json", {"pooling_mode": "mean"})
    change(folder)
    with pytest.raises(CheckpointError, match=reason):
        read(folder)


@pytest.mark.parametrize("options", [{"task": Task.RERANK}, {"pooling": PoolingMethod.CLS}])
def test_what_a_table_cannot_do_is_refused(options, tmp_path):
    folder = tiny_static.static(tmp_path)
    with pytest.raises(CheckpointError, match="static embeddings"):
        read(folder, **options)


def test_weights_that_do_not_fit_the_tokens_are_refused(tmp_path):
    from safetensors.numpy import load_file, save_file

    folder = tiny_static.static(tmp_path, layout="model2vec", shared=True)
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {"weights": tensors["weights"][:5]}, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="'weights' has shape"):
        read(folder)


def test_no_special_tokens_and_a_text_without_tokens_is_empty(tmp_path):
    folder = tiny_static.static(tmp_path)
    tea, nothing = make_preprocessor(read(folder)).texts(["tea", " "])
    vocabulary = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    assert tea.token_ids.tolist() == [vocabulary["tea"]]
    assert (nothing.empty, nothing.prompt_tokens, nothing.cost) == (True, 1, 1)
    assert not tea.empty


def test_model2vec_leaves_unknown_tokens_out_and_looks_at_so_many_characters(tmp_path):
    spec = read(tiny_static.static(tmp_path, layout="model2vec", max_length=3))
    preprocessor = make_preprocessor(spec)
    known, unknown, long = preprocessor.texts(["tea", "☃ tea ☃", "tea " * 50])
    assert unknown.token_ids.tolist() == known.token_ids.tolist()
    assert long.truncated
    assert long.cost == min(3, spec.static.characters // 4 + 1)
