"""Rerankers and classifiers: task, labels, activation, and heads that are not there."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import tiny
from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.model import Activation
from infinity_emb.types import Task

KINDS = sorted(tiny.ARCHITECTURES)


def read(folder, **options):
    return read_spec(Checkpoint(folder, str(folder), "local folder"), **options)


@pytest.mark.parametrize("kind", KINDS)
def test_one_label_is_a_reranker_and_several_a_classifier(kind, tmp_path):
    reranker = read(tiny.tiny(kind, tmp_path / "one", labels=("relevant",)))
    assert (reranker.task, reranker.labels, reranker.activation) == (Task.RERANK, ("relevant",), Activation.SIGMOID)
    assert (reranker.modules, reranker.dim, reranker.pooling) == ((), 0, None)
    classifier = read(tiny.tiny(kind, tmp_path / "three", labels=("a", "b", "c")))
    assert (classifier.task, classifier.labels) == (Task.CLASSIFY, ("a", "b", "c"))
    assert classifier.activation is Activation.SOFTMAX


def test_the_task_does_not_depend_on_where_the_folder_lies(tmp_path):
    folder = tiny.tiny_bert(tmp_path / "cache/models--x/snapshots/1", labels=("relevant",))
    shutil.copytree(folder, tmp_path / "models/c")
    assert read(folder).task is read(tmp_path / "models/c").task is Task.RERANK


def test_several_labels_at_once_get_a_sigmoid_each(tmp_path):
    assert read(tiny.tiny_bert(tmp_path, labels=("a", "b"), multi_label=True)).activation is Activation.SIGMOID


@pytest.mark.parametrize(
    ("changes", "task", "labels", "expected"),
    [
        (
            {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
            None,
            1,
            Activation.IDENTITY,
        ),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}, None, 1, Activation.IDENTITY),
        ({"sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh"}, None, 1, Activation.TANH),
        ({"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}}, None, 3, Activation.SOFTMAX),
        ({"sentence_transformers": {"activation_fn": "torch.nn.Sigmoid"}}, None, 3, Activation.SIGMOID),
        ({"problem_type": "regression"}, Task.CLASSIFY, 1, Activation.IDENTITY),
        ({}, Task.CLASSIFY, 1, Activation.SIGMOID),
    ],
)
def test_the_activation_is_the_checkpoints_own(changes, task, labels, expected, tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a", "b", "c")[:labels])
    tiny.edit_json(folder / "config.json", **changes)
    assert read(folder, task=task).activation is expected


def test_an_unknown_activation_is_named(tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a",))
    tiny.edit_json(folder / "config.json", sbert_ce_default_activation_function="my.code.Fn")
    with pytest.raises(CheckpointError, match=r"my\.code\.Fn"):
        read(folder)


def test_labels_follow_their_numbers_not_their_order(tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a", "b", "c"))
    tiny.edit_json(folder / "config.json", id2label={"2": "z", "0": "x", "1": "y"})
    assert read(folder).labels == ("x", "y", "z")


@pytest.mark.parametrize("named", [{"0": "a", "2": "c"}, {"first": "a"}])
def test_labels_with_wrong_keys_are_refused(named, tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a", "b"))
    tiny.edit_json(folder / "config.json", id2label=named)
    with pytest.raises(CheckpointError, match="id2label"):
        read(folder)


def test_without_names_labels_are_counted(tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a", "b", "c"))
    tiny.edit_json(folder / "config.json", id2label=..., num_labels=3)
    assert read(folder).labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_a_head_that_does_not_fit_the_labels_is_refused(tmp_path):
    folder = tiny.tiny_roberta(tmp_path, labels=("a", "b", "c"))
    tiny.edit_json(folder / "config.json", id2label={"0": "a"})
    with pytest.raises(CheckpointError, match=r"3 rows.*1 label"):
        read(folder)


def test_a_missing_head_is_never_made_up(tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a",))
    tiny.save_tensors(folder, {"bert.embeddings.word_embeddings.weight": np.ones((4, 32))}, "float32")
    with pytest.raises(CheckpointError, match="no classification head"):
        read(folder)


@pytest.mark.parametrize("task", [Task.RERANK, Task.CLASSIFY])
@pytest.mark.parametrize("architecture", ["BertModel", "Qwen3ForCausalLM"])
def test_an_embedder_or_a_generative_model_cannot_score(task, architecture, tmp_path):
    folder = tiny.tiny_bert(tmp_path, modules=False)
    tiny.edit_json(folder / "config.json", architectures=[architecture])
    with pytest.raises(CheckpointError, match=f"{architecture} has no classification head.*{task}") as caught:
        read(folder, task=task)
    assert caught.value.param == "config.json:architectures"


def test_rerank_of_a_classifier_is_refused_and_classify_of_a_reranker_works(tmp_path):
    with pytest.raises(CheckpointError, match="one label"):
        read(tiny.tiny_bert(tmp_path / "three", labels=("a", "b", "c")), task=Task.RERANK)
    assert read(tiny.tiny_bert(tmp_path / "one", labels=("a",)), task=Task.CLASSIFY).task is Task.CLASSIFY


def test_embed_of_a_scorer_is_allowed_when_asked_for(tmp_path):
    spec = read(tiny.tiny_bert(tmp_path, labels=("a",)), task=Task.EMBED)
    assert (spec.task, spec.dim, spec.labels) == (Task.EMBED, 32, ())
    assert spec.notes


def test_a_cross_encoder_of_other_modules_is_refused(tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a",))
    tiny.write_json(folder / "config_sentence_transformers.json", {"model_type": "CrossEncoder"})
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling")])
    with pytest.raises(CheckpointError, match="Transformer, Pooling"):
        read(folder)


def test_the_activation_and_prompts_of_a_saved_cross_encoder_count(tmp_path):
    folder = tiny.tiny_bert(tmp_path, labels=("a",))
    saved = {
        "model_type": "CrossEncoder",
        "activation_fn": "torch.nn.modules.linear.Identity",
        "prompts": {"q": "ask: "},
    }
    tiny.write_json(folder / "config_sentence_transformers.json", saved)
    tiny.write_modules(folder, [("", "sentence_transformers.base.modules.transformer.Transformer")])
    spec = read(folder)
    assert (spec.activation, spec.prompts) == (Activation.IDENTITY, {"q": "ask: "})
