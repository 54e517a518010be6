"""Averaged layers and coded vectors: what is read, and what is refused."""

from __future__ import annotations

import pytest

import tiny
import tiny_modules
from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.layer_mean import LayerMeanSpec
from infinity_emb.models.spec.model import PoolingMode, PoolingSpec
from infinity_emb.types import Task

LAYERS, CODES = "1_Layers/config.json", "2_SparseAutoEncoder/config.json"
SAVED = "config_sentence_transformers.json"
MEAN = PoolingSpec((PoolingMode.MEAN,))


def read(folder, **options):
    return read_spec(Checkpoint(folder, str(folder), "local folder"), **options)


def refused(folder, reason, param, **options):
    with pytest.raises(CheckpointError, match=reason) as caught:
        read(folder, **options)
    assert caught.value.param == param


@pytest.mark.parametrize("old", [False, True])
def test_a_mean_of_layers_is_read_in_both_generations(old, tmp_path):
    folder = tiny_modules.layer_mean(tmp_path, "bert", start=1, old=old)
    assert read(folder).modules == (LayerMeanSpec(1, 2, folder / "1_Layers/model.safetensors"), MEAN)


def test_without_states_of_layers_it_does_nothing_and_says_so(tmp_path):
    folder = tiny_modules.layer_mean(tmp_path, "bert", switched=False)
    spec = read(folder)
    assert spec.modules == (MEAN,)
    assert "output_hidden_states" in spec.notes[0]
    tiny.edit_json(folder / "sentence_bert_config.json", config_args={"output_hidden_states": True})
    assert isinstance(read(folder).modules[0], LayerMeanSpec)


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"embedding_dimension": 9}, "width 32", f"{LAYERS}:embedding_dimension"),
        ({"layer_start": 3}, "beyond the last", f"{LAYERS}:layer_start"),
        ({"num_hidden_layers": 7}, "layer_weights", "1_Layers/model.safetensors"),
    ],
)
def test_layers_that_do_not_fit_are_refused(changes, reason, field, tmp_path):
    folder = tiny_modules.layer_mean(tmp_path, "bert")
    tiny.edit_json(folder / LAYERS, **changes)
    refused(folder, reason, field)


def test_codes_of_an_embedder_are_a_sparse_encoder(tmp_path):
    folder = tiny_modules.coded(tmp_path, "bert", kept=6)
    spec = read(folder)
    assert (spec.task, spec.dim, spec.modules, spec.similarity_fn) == (Task.SPARSE, 48, (MEAN,), "dot")
    assert (spec.sparse.codes.kept, spec.sparse.codes.standardized, spec.weighs_words) == (6, False, False)
    tiny.edit_json(folder / SAVED, max_active_dims=3)  # of the whole model
    assert read(folder).sparse.codes.kept == 3


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"input_dim": 16}, "width 32", f"{CODES}:input_dim"),
        ({"hidden_dim": 40}, "encoder.weight", "2_SparseAutoEncoder/model.safetensors"),
        ({"k": 49}, "more than the 48 codes", f"{CODES}:k"),
    ],
)
def test_codes_that_do_not_fit_are_refused(changes, reason, field, tmp_path):
    folder = tiny_modules.coded(tmp_path, "bert")
    tiny.edit_json(folder / CODES, **changes)
    refused(folder, reason, field)


def test_codes_are_refused_elsewhere(tmp_path):
    folder = tiny_modules.coded(tmp_path, "bert")
    refused(folder, "cannot do the task embed", f"{SAVED}:model_type", task=Task.EMBED)
    tiny_modules.write_chain(
        folder,
        [
            ("", "Transformer"),
            ("1_Pooling", "Pooling"),
            ("2_SparseAutoEncoder", "SparseAutoEncoder"),
            ("", "Normalize"),
        ],
    )
    refused(folder, "the modules of an embedder, then SparseAutoEncoder", "modules.json")
    (folder / SAVED).unlink()
    refused(folder, "is not supported in an embedder", "modules.json:[2].type")
