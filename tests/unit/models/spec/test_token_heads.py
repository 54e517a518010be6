"""The heads of BGE-M3: where they are found, and what is left unread until somebody allows it."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tiny
from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.types import Task

HIDDEN = tiny.HIDDEN


@pytest.fixture
def folder(tmp_path):
    return tiny.tiny_xlm_roberta(tmp_path / "model", pooling="cls")


def read(folder, **options):
    return read_spec(Checkpoint(folder, str(folder), "local folder"), **options)


def layer(width, hidden=HIDDEN, prefix=""):
    weight = np.ones((width, hidden), np.float32)
    return {f"{prefix}weight": weight, f"{prefix}bias": np.zeros(width, np.float32)}


def test_an_embedder_without_heads_has_none(folder):
    spec = read(folder)
    assert spec.heads is None
    assert spec.withheld == ""


@pytest.mark.parametrize("prefix", ["", "linear.", "sparse_linear."])
def test_a_head_is_found_in_a_safetensors_file_of_its_name(prefix, folder):
    save_file(layer(1, prefix=prefix), folder / "sparse_linear.safetensors")
    heads = read(folder).heads
    assert (heads.sparse.prefix, heads.sparse.width, heads.sparse.bias) == (prefix, 1, True)
    assert heads.multi_vector is None
    assert heads.tasks == (Task.SPARSE,)


def test_heads_are_found_among_the_weights(folder):
    whole = load_file(folder / "model.safetensors")
    whole |= layer(1, prefix="sparse_linear.") | {"colbert_linear.weight": np.ones((24, HIDDEN), np.float32)}
    save_file(whole, folder / "model.safetensors")
    heads = read(folder).heads
    assert heads.sparse.weights == heads.multi_vector.weights == folder / "model.safetensors"
    assert (heads.multi_vector.width, heads.multi_vector.bias) == (24, False)
    assert heads.tasks == (Task.SPARSE, Task.MULTI_VECTOR)


def test_tokens_without_a_weight_are_the_ends_the_padding_and_the_unknown(folder):
    save_file(layer(1), folder / "sparse_linear.safetensors")
    assert read(folder).heads.unused_ids == (0, 1, 2, 3)
    settings = folder / "tokenizer_config.json"
    tiny.edit_json(settings, cls_token=None, eos_token=None, pad_token=None, unk_token={"content": "<unk>"})
    assert read(folder).heads.unused_ids == (0, 1, 2, 3)  # what the class is known to use
    tiny.edit_json(settings, tokenizer_class="Other")
    assert read(folder).heads.unused_ids == (3,)
    tiny.write_json(folder / "special_tokens_map.json", {"cls_token": "<s>", "eos_token": {"content": "</s>"}})
    assert read(folder).heads.unused_ids == (0, 2, 3)


def test_pickled_heads_stay_unread_and_say_how_to_have_them(folder):
    for name in ("sparse_linear.pt", "colbert_linear.pt"):
        (folder / name).write_bytes(b"never opened")
    spec = read(folder)
    assert spec.heads is None
    assert spec.task is Task.EMBED
    assert "sparse and multi-vector vectors (sparse_linear.pt, colbert_linear.pt)" in spec.withheld
    assert "--allow-pickle" in spec.withheld
    assert spec.withheld in spec.notes


def test_a_pickled_head_that_asks_for_more_than_numbers_is_refused_and_not_run(folder, tmp_path):
    class Runs:
        def __reduce__(self):
            return open, (str(tmp_path / "run"), "w")

    for content, reason in (
        (pickle.dumps({"weight": Runs()}, 2), r"io\.open.*was not run"),
        (None, "before torch 1.6"),
    ):
        made = io.BytesIO()
        if content is not None:
            with zipfile.ZipFile(made, "w") as archive:
                archive.writestr("x/data.pkl", content)
        (folder / "sparse_linear.pt").write_bytes(made.getvalue())
        with pytest.raises(CheckpointError, match=reason) as caught:
            read(folder, allow_pickle=True)
        assert type(caught.value) is CheckpointError
        assert caught.value.param == "sparse_linear.pt"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "tensors", "reason"),
    [
        ("sparse_linear", layer(2), "is not \\[1, "),
        ("sparse_linear", layer(1, HIDDEN + 1), "is not \\[any, "),
        ("colbert_linear", layer(8) | {"bias": np.zeros(7, np.float32)}, "with a bias as long"),
        ("colbert_linear", {"kernel": np.zeros((8, HIDDEN), np.float32)}, "'weight' is missing; it holds kernel"),
    ],
)
def test_a_head_of_another_shape_is_refused_by_name(name, tensors, reason, folder):
    save_file(tensors, folder / f"{name}.safetensors")
    with pytest.raises(CheckpointError, match=reason) as caught:
        read(folder)
    assert caught.value.param == f"{name}.safetensors"
