"""Embedders: modules.json in both generations, every module, prompts, lengths, and what goes wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tiny
from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.model import (
    Activation,
    DenseSpec,
    LayerNormSpec,
    NormalizeSpec,
    PoolingMode,
    PoolingSpec,
)
from infinity_emb.types import PoolingMethod, Task
from readings import read, refused

RANDOM = np.random.default_rng(0)
NEW_PATHS = [
    ("", "sentence_transformers.base.modules.transformer.Transformer"),
    ("1_Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"),
    ("2_Dense", "sentence_transformers.base.modules.dense.Dense"),
    ("3_Dropout", "sentence_transformers.sentence_transformer.modules.dropout.Dropout"),
    ("4_LayerNorm", "sentence_transformers.sentence_transformer.modules.layer_norm.LayerNorm"),
]


def test_an_ordinary_embedder(tmp_path):
    spec = read(tiny.tiny_bert(tmp_path))
    assert spec.task is Task.EMBED
    assert spec.modules == (PoolingSpec((PoolingMode.MEAN,)), NormalizeSpec())
    assert spec.normalized
    assert (spec.dim, spec.hidden_size, spec.max_length) == (32, 32, 64)
    assert (spec.model_type, spec.architecture) == ("bert", "BertModel")
    assert spec.weights == (tmp_path / "model.safetensors",)
    assert spec.notes == ()


@pytest.mark.parametrize("normalize", [
    "sentence_transformers.sentence_transformer.modules.normalize.Normalize",
    "sentence_transformers.base.modules.normalize.Normalize",
    "sentence_transformers.models.Normalize",
])  # fmt: skip
def test_new_module_paths_mean_what_the_old_ones_meant(normalize, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.write_json(folder / "1_Pooling/config.json", {"embedding_dimension": 32, "pooling_mode": ["max", "cls"]})
    tiny.write_dense(folder / "2_Dense", 64, 8, RANDOM, activation_function="torch.nn.modules.linear.Identity")
    tiny.write_json(folder / "4_LayerNorm/config.json", {"dimension": 8})
    tiny.save_tensors(folder / "4_LayerNorm", {"norm.weight": np.ones(8), "norm.bias": np.zeros(8)}, "float32")
    tiny.write_modules(folder, [*NEW_PATHS, ("5_Normalize", normalize)])
    spec = read(folder)
    assert spec.modules == (
        PoolingSpec((PoolingMode.MAX, PoolingMode.CLS)),  # the new list keeps its own order
        DenseSpec(64, 8, True, Activation.IDENTITY, folder / "2_Dense/model.safetensors"),
        LayerNormSpec(8, folder / "4_LayerNorm/model.safetensors"),
        NormalizeSpec(),
    )
    assert spec.dim == 8


@pytest.mark.parametrize("mode", list(PoolingMode))
def test_every_pooling_mode_in_both_spellings(mode, tmp_path):
    old = tiny.tiny_bert(tmp_path / "old", pooling=mode.value)
    assert read(old).pooling == PoolingSpec((mode,))
    new = tiny.tiny_bert(tmp_path / "new")
    tiny.write_json(new / "1_Pooling/config.json", {"pooling_mode": mode.value, "include_prompt": False})
    assert read(new).pooling == PoolingSpec((mode,), include_prompt=False)


def test_old_flags_concatenate_in_a_fixed_order_and_none_means_mean(tmp_path):
    folder = tiny.tiny_bert(tmp_path, pooling=("lasttoken", "mean", "cls"), normalize=False)
    spec = read(folder)
    assert spec.pooling.modes == (PoolingMode.CLS, PoolingMode.MEAN, PoolingMode.LAST_TOKEN)
    assert spec.dim == 96
    assert not spec.normalized
    tiny.write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": 32})
    assert read(folder).pooling.modes == (PoolingMode.MEAN,)


@pytest.mark.parametrize(
    ("asked", "mode"), [(PoolingMethod.CLS, PoolingMode.CLS), (PoolingMethod.MEAN, PoolingMode.MEAN)]
)
def test_a_pooling_that_is_asked_for_wins_and_is_noted(asked, mode, tmp_path):
    folder = tiny.tiny_bert(tmp_path, pooling="max")
    spec = read(folder, pooling=asked)
    assert spec.pooling.modes == (mode,)
    assert "max" in spec.notes[0]


def test_dense_without_activation_is_tanh_and_null_is_none(tmp_path):
    folder = tiny.tiny_bert(tmp_path, dense=16)
    assert read(folder).modules[1].activation is Activation.TANH
    tiny.edit_json(folder / "2_Dense/config.json", activation_function=None)
    assert read(folder).modules[1].activation is Activation.IDENTITY


@pytest.mark.parametrize(
    ("path", "activation"),
    [
        ("torch.nn.modules.activation.Tanh", Activation.TANH),
        ("torch.nn.modules.activation.GELU", Activation.GELU),
        ("torch.nn.modules.activation.ReLU", Activation.RELU),
        ("torch.nn.modules.activation.SiLU", Activation.SILU),
        ("torch.nn.modules.activation.Sigmoid", Activation.SIGMOID),
        ("torch.nn.Identity", Activation.IDENTITY),
    ],
)
def test_dense_activations_are_mapped(path, activation, tmp_path):
    folder = tiny.tiny_bert(tmp_path, dense=16)
    tiny.edit_json(folder / "2_Dense/config.json", activation_function=path)
    assert read(folder).modules[1].activation is activation


@pytest.mark.parametrize(
    "path", ["torch.nn.modules.activation.Mish", "os.system", "my.torch.nn.Tanh", "torch.nnx.Tanh"]
)
def test_an_unknown_activation_is_named_and_never_run(path, tmp_path):
    folder = tiny.tiny_bert(tmp_path, dense=16)
    tiny.edit_json(folder / "2_Dense/config.json", activation_function=path)
    refused(folder, path, "2_Dense/config.json:activation_function")


def test_dense_on_token_states_comes_before_pooling(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.write_dense(folder / "1_Dense", 32, 16, RANDOM, module_input_name="token_embeddings")
    tiny.write_json(folder / "2_Pooling/config.json", {"embedding_dimension": 16, "pooling_mode": "mean"})
    tiny.write_modules(folder, [("", "Transformer"), ("1_Dense", "Dense"), ("2_Pooling", "Pooling")])
    spec = read(folder)
    assert spec.modules[0].on_tokens
    assert (spec.hidden_size, spec.dim) == (32, 16)


@pytest.mark.parametrize(
    "kind",
    [
        "sentence_transformers.models.Nothing",
        "custom_st.Router",
        "sentence_transformers.sparse_encoder.modules.splade_pooling.SpladePooling",
        "custom_st.Transformer",
        "evil.Pooling",
    ],
)
def test_any_other_module_is_an_error_that_names_it_and_what_is_supported(kind, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_X", kind)])
    with pytest.raises(CheckpointError, match="Supported") as caught:
        read(folder)
    assert kind in caught.value.message
    assert "LayerNorm" in caught.value.message
    assert caught.value.param == "modules.json:[2].type"


@pytest.mark.parametrize("path", ["../outside", "/etc", "a/../../b", "..\\x", "C:\\x", "\\\\host\\share", "a\0b"])
def test_a_module_path_outside_the_repository_is_refused(path, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.write_modules(folder, [("", "Transformer"), (path, "Pooling")])
    refused(folder, "leaves the repository", "modules.json:[1].path")


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        ([("1_Pooling", "Pooling")], "exactly one Transformer"),
        ([("", "Transformer"), ("", "Transformer"), ("1_Pooling", "Pooling")], "exactly one Transformer"),
        ([("", "Transformer")], "no Pooling"),
        ([("", "Transformer"), ("1_Pooling", "Pooling"), ("1_Pooling", "Pooling")], "second Pooling"),
        (
            [("", "Transformer"), ("2_Normalize", "Normalize"), ("1_Pooling", "Pooling")],
            "no Pooling module comes before",
        ),
    ],
)
def test_a_chain_that_makes_no_sense_is_refused(chain, reason, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.write_modules(folder, chain)
    refused(folder, reason)


@pytest.mark.parametrize(
    ("file", "changes", "field", "reason"),
    [
        ("1_Pooling/config.json", {"word_embedding_dimension": 31}, "word_embedding_dimension", "31"),
        ("1_Pooling/config.json", {"pooling_mode": "median"}, "pooling_mode", "median"),
        ("1_Pooling/config.json", {"pooling_mode": 3}, "pooling_mode", "3"),
        ("1_Pooling/config.json", {"pooling_mode_median_tokens": True}, "pooling_mode_median_tokens", "unknown"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": "yes"}, "pooling_mode_cls_token", "true nor false"),
        ("2_Dense/config.json", {"in_features": 31}, "in_features", "31"),
        ("2_Dense/config.json", {"in_features": ...}, "in_features", "missing"),
        ("2_Dense/config.json", {"out_features": 0}, "out_features", "at least 1"),
        ("2_Dense/config.json", {"use_residual": "yes"}, "use_residual", "true nor false"),
        ("2_Dense/config.json", {"module_input_name": "image"}, "module_input_name", "image"),
        ("2_Dense/config.json", {"module_output_name": "scores"}, "module_output_name", "scores"),
        ("config_sentence_transformers.json", {"default_prompt_name": "nope"}, "default_prompt_name", "nope"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "maxsim"}, "similarity_fn_name", "maxsim"),
        ("config_sentence_transformers.json", {"model_type": "SpanEncoder"}, "model_type", "SpanEncoder"),
        ("config_sentence_transformers.json", {"truncate_dim": 99}, "truncate_dim", "99"),
        ("config_sentence_transformers.json", {"prompts": {"q": 1}}, "prompts.q", "not a string"),
        ("sentence_bert_config.json", {"max_seq_length": "long"}, "max_seq_length", "long"),
        ("sentence_bert_config.json", {"query_expansion": {"strategy": "fixed"}}, "query_expansion", "not supported"),
        ("sentence_bert_config.json", {"transformer_task": "text-generation"}, "transformer_task", "text-generation"),
        ("sentence_bert_config.json", {"modality_config": {"image": {}}}, "modality_config", "no text"),
        ("config.json", {"model_type": ...}, "model_type", "missing"),
        ("config.json", {"hidden_size": ...}, "hidden_size", "Add hidden_size"),
        ("tokenizer_config.json", {"padding_side": "middle"}, "padding_side", "middle"),
    ],
)
def test_a_wrong_field_is_named_with_its_file(file, changes, field, reason, tmp_path):
    folder = tiny.tiny_bert(tmp_path, dense=16, prompts={"q": "ask: "})
    tiny.edit_json(folder / file, **changes)
    refused(folder, reason, f"{file}:{field}")


def test_a_residual_that_changes_the_width_needs_its_projection(tmp_path):
    folder = tiny.tiny_bert(tmp_path, dense=16)
    tiny.edit_json(folder / "2_Dense/config.json", use_residual=True)
    refused(folder, "'residual.weight' is missing", "2_Dense/model.safetensors")


@pytest.mark.parametrize("file", ["config.json", "modules.json", "1_Pooling/config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [b"{broken", b"[" * 100_000, b"\xff", b'"text"'])
def test_a_file_that_is_no_json_object_is_named(file, content, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    (folder / file).write_bytes(content)
    refused(folder, file.replace(".", r"\."), file)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"])
def test_a_missing_file_is_named_with_the_fix(file, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    (folder / file).unlink()
    refused(folder, "missing", file)


def test_a_missing_folder_is_named(tmp_path):
    refused(tmp_path / "nowhere", "nowhere")


def test_dense_weights_must_be_there_and_fit(tmp_path):
    folder = tiny.tiny_bert(tmp_path, dense=16)
    tiny.save_tensors(folder / "2_Dense", {"linear.weight": np.ones((16, 31))}, "float32")
    refused(folder, r"\[16, 31\].*\[16, 32\]", "2_Dense/model.safetensors")
    tiny.save_tensors(folder / "2_Dense", {"weight": np.ones((16, 32))}, "float32")
    refused(folder, "linear.weight", "2_Dense/model.safetensors")
    (folder / "2_Dense/model.safetensors").unlink()
    refused(folder, "missing", "2_Dense/model.safetensors")
    (folder / "2_Dense/pytorch_model.bin").write_bytes(b"pickle")
    refused(folder, "--allow-pickle", "2_Dense/pytorch_model.bin")


def test_truncated_weights_are_refused(tmp_path):
    path = tiny.tiny_bert(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    refused(tmp_path, "cut short", "model.safetensors")


def test_shards_are_all_looked_for_and_checked_against_the_index(tmp_path):
    folder = tiny.tiny_bert(tmp_path, sharded=True)
    spec = read(folder)
    assert [path.name for path in spec.weights] == [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    index = folder / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    places = dict(content["weight_map"])
    name = next(iter(places))
    tiny.write_json(index, {"weight_map": {**places, name: "model-00002-of-00002.safetensors"}})
    refused(folder, name, "model.safetensors.index.json:weight_map")
    tiny.write_json(index, {"weight_map": {name: "../x.safetensors"}})
    refused(folder, "leaves the repository")
    tiny.write_json(index, content)
    spec.weights[1].unlink()
    refused(folder, "shard", spec.weights[1].name)


def test_pickles_are_refused_by_name_unless_allowed(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(folder, "--allow-pickle", "pytorch_model.bin")
    assert read(folder, allow_pickle=True).weights == (folder / "pytorch_model.bin",)


def test_a_repository_with_only_an_onnx_file_has_no_weights(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    (folder / "model.safetensors").unlink()
    (folder / "onnx").mkdir()
    (folder / "onnx/model.onnx").write_bytes(b"")
    assert read(folder).weights == ()


def test_prompts_similarity_and_dimensions_are_read(tmp_path):
    folder = tiny.tiny_bert(tmp_path, prompts={"query": "query: ", "passage": None}, default_prompt_name="query")
    tiny.edit_json(folder / "config_sentence_transformers.json", similarity_fn_name="dot_score", truncate_dim=16)
    spec = read(folder)
    assert spec.prompts == {"query": "query: ", "passage": ""}
    assert spec.default_prompt_name == "query"
    assert (spec.similarity_fn, spec.truncate_dim, spec.dim) == ("dot", 16, 32)


def test_a_plain_repository_gives_the_mean_and_unit_vectors_and_says_so(tmp_path):
    spec = read(tiny.tiny_bert(tmp_path, modules=False))
    assert spec.modules == (PoolingSpec((PoolingMode.MEAN,)), NormalizeSpec())
    assert "modules.json" in spec.notes[0]


@pytest.mark.parametrize(("causal", "mode"), [(None, PoolingMode.LAST_TOKEN), (False, PoolingMode.MEAN)])
def test_a_plain_causal_model_gives_the_last_token(causal, mode, tmp_path):
    folder = tiny.tiny_bert(tmp_path, modules=False)
    tiny.edit_json(folder / "config.json", architectures=["LlamaForCausalLM"], is_causal=causal)
    assert read(folder).pooling.modes == (mode,)


def test_the_transformer_may_lie_in_a_folder_of_its_own(tmp_path):
    tiny.tiny_bert(tmp_path / "0_Transformer", max_seq_length=20)
    tiny.write_modules(tmp_path, [("0_Transformer", "Transformer"), ("1_Pooling", "Pooling")])
    tiny.write_json(tmp_path / "1_Pooling/config.json", {"pooling_mode": "cls"})
    spec = read(tmp_path)
    assert spec.folder == tmp_path / "0_Transformer"
    assert spec.max_length == 20


@pytest.mark.parametrize("name", ["roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"])
def test_module_options_are_read_from_every_old_file_name(name, tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    (folder / "sentence_bert_config.json").unlink()
    tiny.write_json(folder / f"sentence_{name}_config.json", {"max_seq_length": 11, "do_lower_case": True})
    spec = read(folder)
    assert (spec.max_length, spec.do_lower_case) == (11, True)


def test_a_module_in_the_root_reads_no_file_outside_the_repository(tmp_path):
    folder = tiny.tiny_bert(tmp_path)
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("", "Normalize")])
    assert read(folder).modules[-1] == NormalizeSpec()
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("", "Dense")])
    refused(folder, "in_features", "config.json:in_features")
