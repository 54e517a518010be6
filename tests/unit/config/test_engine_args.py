"""`EngineArgs` as users of the original build them."""

from __future__ import annotations

import dataclasses

import pytest

from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.errors import ConfigurationError
from infinity_emb.types import Device, Dtype, InferenceEngine

ORIGINAL_FIELDS = [
    "model_name_or_path",
    "batch_size",
    "revision",
    "trust_remote_code",
    "engine",
    "model_warmup",
    "vector_disk_cache_path",
    "device",
    "device_id",
    "compile",
    "bettertransformer",
    "dtype",
    "pooling_method",
    "lengths_via_tokenize",
    "embedding_dtype",
    "served_model_name",
    "onnx_disable_optimize",
    "onnx_do_not_prefer_quantized",
]


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for field in ("MODEL_ID", "BATCH_SIZE", "REVISION", "ENGINE", "DEVICE_ID", "COMPILE", "VECTOR_DISK_CACHE"):
        monkeypatch.delenv(f"INFINITY_{field}", raising=False)


def test_fields_keep_the_original_names_and_order():
    assert [field.name for field in dataclasses.fields(EngineArgs)][: len(ORIGINAL_FIELDS)] == ORIGINAL_FIELDS


def test_defaults_are_safe():
    args = EngineArgs()
    assert args.model_name_or_path == "sentence-transformers/all-MiniLM-L6-v2"
    assert not args.trust_remote_code
    assert not args.allow_pickle


def test_words_become_members():
    args = EngineArgs(engine="torch", device="cpu", dtype="float16")
    assert (args.engine, args.device, args.dtype) == (InferenceEngine.TORCH, Device.CPU, Dtype.FLOAT16)


@pytest.mark.parametrize(("name", "meant"), [("optimum", "onnxruntime"), ("debugengine", "dummy")])
def test_engine_names_of_the_original_are_ours(name, meant):
    assert EngineArgs(engine=name).engine == meant


def test_no_device_is_auto_and_no_revision_is_none():
    args = EngineArgs(device=None, revision="")
    assert args.device is Device.AUTO
    assert args.revision is None


@pytest.mark.parametrize(("given", "meant"), [("0,1", (0, 1)), ([2], (2,)), ("", ()), ((), ())])
def test_device_ids_are_numbers(given, meant):
    assert EngineArgs(device_id=given).device_id == meant


@pytest.mark.parametrize(
    ("given", "meant"), [(True, "torch_a_b"), (False, ""), ("", ""), ("/some/folder", "/some/folder")]
)
def test_disk_cache_is_named_after_engine_and_model(given, meant):
    assert (
        EngineArgs(model_name_or_path="a/b", engine="torch", vector_disk_cache_path=given).vector_disk_cache_path
        == meant
    )


@pytest.mark.parametrize(("model", "name"), [("a/b", "a/b"), ("/x/y/z", "y/z"), ("/x/y/z/", "y/z"), ("plain", "plain")])
def test_served_name_is_the_last_two_parts(model, name):
    assert EngineArgs(model_name_or_path=model).served_model_name == name


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_size": "many"},
        {"batch_size": 0},
        {"batch_size": True},
        {"engine": "tensorflow"},
        {"dtype": 32},
        {"compile": "perhaps"},
        {"model_name_or_path": ""},
        {"model_name_or_path": None, "revision": 3},
        {"device_id": [-1]},
    ],
)
def test_wrong_values_are_value_errors_that_name_the_field(wrong):
    with pytest.raises(ValueError, match=list(wrong)[-1]) as raised:
        EngineArgs(**wrong)
    assert isinstance(raised.value, ConfigurationError)


def test_dictionary_and_copy_give_equal_objects():
    args = EngineArgs(model_name_or_path="a/b", device_id="0,1", vector_disk_cache_path=True, task="rerank", threads=2)
    assert EngineArgs(**args.to_dict()) == args
    assert args.copy() == args
    assert args.copy() is not args


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        EngineArgs().batch_size = 4


def test_fields_that_are_not_given_take_the_first_value_of_their_variable(monkeypatch):
    monkeypatch.setenv("INFINITY_MODEL_ID", "a/one;b/two")
    monkeypatch.setenv("INFINITY_BATCH_SIZE", "8;4;")
    monkeypatch.setenv("INFINITY_COMPILE", "1")
    monkeypatch.setenv("INFINITY_VECTOR_DISK_CACHE", "true")
    args = EngineArgs(batch_size=2)
    assert (args.model_name_or_path, args.batch_size, args.compile) == ("a/one", 2, True)
    assert args.vector_disk_cache_path == "auto_a_one"


def test_from_env_broadcasts_single_values(monkeypatch):
    monkeypatch.setenv("INFINITY_MODEL_ID", "a/one;b/two;")
    monkeypatch.setenv("INFINITY_BATCH_SIZE", "8")
    monkeypatch.setenv("INFINITY_DEVICE_ID", "0;1,2")
    first, second = EngineArgs.from_env()
    assert (first.batch_size, second.batch_size) == (8, 8)
    assert (first.device_id, second.device_id) == ((0,), (1, 2))


def test_from_env_refuses_lists_of_another_length():
    with pytest.raises(ConfigurationError, match="INFINITY_BATCH_SIZE has 3 values for 2 models"):
        EngineArgs.from_env({"INFINITY_MODEL_ID": "a;b", "INFINITY_BATCH_SIZE": "1;2;3"})
