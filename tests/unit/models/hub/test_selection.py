from __future__ import annotations

import json

import pytest

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.modules import is_weightless, module_folders, required_files
from infinity_emb.models.hub.selection import Wanted, check_file_names, select

TEXTS = ["config.json", "tokenizer.json", "vocab.txt", "sentencepiece.bpe.model", "1_Pooling/config.json"]


def test_only_configuration_tokenizer_and_safetensors_are_chosen():
    names = [
        *TEXTS,
        "model.safetensors",
        "pytorch_model.bin",
        "tf_model.h5",
        "modeling_custom.py",
        "README.md",
        "image.png",
        "onnx/model.onnx",
        "openvino/openvino_model.bin",
        "openvino/config.json",
        "eval/results.json",
        "pytorch_model.bin.index.json",
        "training_args.bin",
    ]
    assert select(names, ["1_Pooling"]) == tuple(sorted([*TEXTS, "model.safetensors"]))


def test_one_form_of_the_weights_is_enough():
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    index = "model.safetensors.index.json"
    assert select(["config.json", index, *shards, "consolidated.safetensors"]) == tuple(
        sorted(["config.json", index, *shards])
    )
    assert select(["config.json", "model.safetensors", *shards]) == ("config.json", "model.safetensors")
    assert select(["config.json", "open.safetensors"]) == ("config.json", "open.safetensors")


def test_modules_bring_their_own_weights():
    names = [
        "config.json",
        "model.safetensors",
        "2_Dense/config.json",
        "2_Dense/model.safetensors",
        "3_Other/config.json",
    ]
    assert select(names, ["2_Dense"]) == tuple(sorted(names[:-1]))


def test_a_transformer_in_a_folder_of_its_own_is_found():
    names = ["modules.json", "0_Transformer/config.json", "0_Transformer/model.safetensors", "1_Pooling/config.json"]
    assert select(names, ["0_Transformer", "1_Pooling"]) == tuple(sorted(names))


def test_onnx_with_its_data_is_taken_without_safetensors_or_when_asked_for():
    onnx = ["onnx/model.onnx", "onnx/model.onnx_data"]
    names = ["config.json", "onnx/model_quantized.onnx", "pytorch_model.bin", *onnx]
    assert select(names) == ("config.json", *onnx)
    with_safetensors = [*names, "model.safetensors"]
    assert select(with_safetensors) == ("config.json", "model.safetensors")
    assert select(with_safetensors, wanted=Wanted(onnx=True)) == ("config.json", "model.safetensors", *onnx)


@pytest.mark.parametrize(
    "pickled", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt", "2_Dense/pytorch_model.bin"]
)
def test_pickled_weights_are_never_chosen_and_the_way_out_is_named(pickled):
    names = ["config.json", "2_Dense/config.json", pickled]
    if "/" in pickled:
        names.append("model.safetensors")
    with pytest.raises(CheckpointError, match=r"pickle.*--revision") as caught:
        select(names, ["2_Dense"])
    assert caught.value.param == pickled
    assert pickled in select(names, ["2_Dense"], Wanted(pickle=True))


def test_allowed_pickles_come_with_their_index():
    shards = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
    names = ["config.json", *shards, "pytorch_model.bin.index.json"]
    assert select(names, wanted=Wanted(pickle=True)) == tuple(sorted(names))


def test_pickled_weights_are_not_fetched_beside_safetensors_even_if_allowed():
    names = ["config.json", "model.safetensors", "pytorch_model.bin"]
    assert "pytorch_model.bin" not in select(names, wanted=Wanted(pickle=True))


def test_a_particular_onnx_file_is_taken_or_the_choice_is_shown():
    names = ["config.json", "onnx/model.onnx", "onnx/model_qint8.onnx", "onnx/model_qint8.onnx_data"]
    assert select(names, wanted=Wanted(onnx_file="onnx/model_qint8.onnx")) == ("config.json", *names[2:])
    with pytest.raises(CheckpointError, match=r"has: onnx/model\.onnx, onnx/model_qint8\.onnx"):
        select(names, wanted=Wanted(onnx_file="onnx/other.onnx"))


def test_a_repository_without_weights_says_so():
    with pytest.raises(CheckpointError, match="no weights"):
        select(["config.json", "tokenizer.json"])


@pytest.mark.parametrize("name", ["../evil.json", "/etc/passwd", "a/../../b.json", "C:\\x.json"])
def test_file_names_that_climb_out_are_refused(name):
    with pytest.raises(CheckpointError, match="outside its folder"):
        check_file_names(["config.json", name])


def test_modules_name_their_folders_and_needs():
    modules = b"""[{"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling/", "type": "sentence_transformers.models.Pooling"},
        {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
        {"path": "3_Normalize", "type": "sentence_transformers.models.Normalize"}]"""
    assert module_folders(modules) == ("1_Pooling", "2_Dense", "3_Normalize")
    assert required_files(modules) == ("1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors")


@pytest.mark.parametrize("content", [b"", b"{}x", b'{"a": 1}', b'[{"path": "x"}]', b"[1]", b"3"])
def test_a_broken_list_of_modules_is_named(content):
    with pytest.raises(CheckpointError, match=r"modules\.json is not a list"):
        module_folders(content)


def test_a_module_outside_the_repository_is_refused():
    with pytest.raises(CheckpointError, match="outside the repository"):
        module_folders(b'[{"path": "../../x", "type": "a.Pooling"}]')


def test_heads_beside_a_model_are_fetched_in_either_form():
    heads = ["colbert_linear.pt", "sparse_linear.safetensors"]
    names = ["config.json", "model.safetensors", "other.safetensors", "other.pt", *heads]
    assert select(names) == tuple(sorted(["config.json", "model.safetensors", *heads]))


def test_a_bag_of_words_needs_no_weights_unless_something_behind_it_does():
    names = ["modules.json", "0_BoW/config.json", "1_Dense/config.json"]
    bag, dense = {"path": "0_BoW", "type": "x.BoW"}, {"path": "1_Dense", "type": "x.Dense"}
    alone = json.dumps([bag, {"path": "1_Normalize", "type": "x.Normalize"}]).encode()
    assert is_weightless(alone)
    assert select(names[:2], module_folders(alone), weightless=True) == ("0_BoW/config.json", "modules.json")
    assert not is_weightless(json.dumps([bag, dense]).encode())
    assert not is_weightless(json.dumps([{"path": "", "type": "x.Transformer"}]).encode())
