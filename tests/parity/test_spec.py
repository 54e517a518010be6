"""What sentence-transformers 6 writes, in its own new spelling, reads back as what it was made from."""

from __future__ import annotations

import dataclasses
import warnings

import pytest

import tiny
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.model import Activation, DenseSpec, NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.types import Task

pytestmark = pytest.mark.parity


def read(folder):
    return read_spec(Checkpoint(folder, str(folder), "local folder"))


def saved_again(name, folder, target):
    import sentence_transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(sentence_transformers, name)(str(folder), device="cpu").save_pretrained(str(target))
    return target


def comparable(spec):
    """Everything but the places of the files and what the library adds to config.json."""
    modules = [
        dataclasses.replace(module, weights=None) if isinstance(module, DenseSpec) else module
        for module in spec.modules
    ]
    return dataclasses.replace(spec, checkpoint=None, folder=None, config={}, weights=(), modules=tuple(modules))


@pytest.mark.parametrize("kind", sorted(tiny.ARCHITECTURES))
def test_an_embedder_saved_by_the_library_has_the_same_spec(kind, tmp_path):
    first = read(tiny.tiny(kind, tmp_path / "old", max_seq_length=48))
    second = read(saved_again("SentenceTransformer", tmp_path / "old", tmp_path / "new"))
    assert dataclasses.replace(comparable(second), prompts={}) == comparable(first)
    assert second.prompts == {"query": "", "document": ""}


def test_several_poolings_dense_and_prompts_survive_the_new_spelling(tmp_path):
    folder = tiny.tiny_bert(
        tmp_path / "old",
        pooling=("cls", "mean", "lasttoken"),
        dense=16,
        prompts={"q": "ask: "},
        default_prompt_name="q",
    )
    spec = read(saved_again("SentenceTransformer", folder, tmp_path / "new"))
    pooling, dense, normalize = spec.modules
    assert pooling == PoolingSpec((PoolingMode.CLS, PoolingMode.MEAN, PoolingMode.LAST_TOKEN))
    assert (dense.in_features, dense.out_features, dense.activation) == (96, 16, Activation.TANH)
    assert normalize == NormalizeSpec()
    assert spec.dim == 16
    assert spec.prompts["q"] == "ask: "
    assert spec.default_prompt_name == "q"


@pytest.mark.parametrize("labels", [("relevant",), ("a", "b", "c")])
def test_a_cross_encoder_saved_by_the_library_keeps_task_and_labels(labels, tmp_path):
    first = read(tiny.tiny_bert(tmp_path / "old", labels=labels))
    second = read(saved_again("CrossEncoder", tmp_path / "old", tmp_path / "new"))
    assert (tmp_path / "new/modules.json").is_file()
    assert second.task == first.task == (Task.RERANK if len(labels) == 1 else Task.CLASSIFY)
    assert second.labels == labels
    assert second.activation == first.activation
    assert second.max_length == first.max_length
