"""Adapters for tasks: what is read of them, and which one a request gets."""

from __future__ import annotations

import pytest

import tiny
import tiny_adapters
from forward import spec_of
from infinity_emb.engine.fidelity.probes import probe_features
from infinity_emb.errors import CheckpointError, InvalidInputError
from infinity_emb.models.graph import obtain_graph
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.types import TextOptions


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_adapters.jina_v3(tmp_path_factory.mktemp("adapters"))


def test_tasks_prompts_and_lengths_follow_from_the_files(folder):
    spec = spec_of(folder)
    assert spec.adapters == tiny_adapters.TASKS
    assert spec.prompts == tiny_adapters.INSTRUCTIONS
    assert spec.default_prompt_name is None
    assert spec.max_length == tiny_adapters.POSITIONS  # rotary: no row of a table is lost to the padding
    assert spec.normalized


def test_prompts_of_sentence_transformers_win_over_those_of_the_transformer(tmp_path):
    saved = {"prompts": {"separation": "part: ", "mine": "my: "}}
    spec = spec_of(tiny_adapters.jina_v3(tmp_path, saved=saved))
    assert spec.prompts == tiny_adapters.INSTRUCTIONS | saved["prompts"]
    assert spec_of(tiny_adapters.jina_v3(tmp_path, task_instructions=None)).prompts["retrieval.query"] == ""


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("lora_adaptations", ["a", 1], "list of names"),
        ("lora_adaptations", "abc", "list of names"),
        ("lora_adaptations", ["a", "a"], "a name twice"),
        ("task_instructions", {"separation": 3}, "not a string"),
    ],
)
def test_what_names_no_tasks_is_refused(field, value, reason, tmp_path):
    with pytest.raises(CheckpointError, match=reason):
        spec_of(tiny_adapters.jina_v3(tmp_path, **{field: value}))


@pytest.mark.parametrize("change", [{"lora_adaptations": None}, {"model_type": "qwen3"}])
def test_the_module_of_other_models_is_refused(change, tmp_path):
    with pytest.raises(CheckpointError, match=r"custom_st\.Transformer.*not supported"):
        spec_of(tiny_adapters.jina_v3(tmp_path, **change))


@pytest.mark.parametrize("field", ["lora_rank", "lora_alpha"])
def test_a_missing_size_of_the_adapters_is_named(field, tmp_path):
    with pytest.raises(CheckpointError, match=field):
        obtain_graph(spec_of(tiny_adapters.jina_v3(tmp_path, **{field: None})))


def test_an_onnx_file_is_refused_because_it_would_leave_the_adapters_out(tmp_path):
    folder = tiny_adapters.jina_v3(tmp_path)
    (folder / "model.onnx").write_bytes(b"")
    with pytest.raises(CheckpointError, match="has adapters for tasks"):
        obtain_graph(spec_of(folder), onnx_file="model.onnx")


@pytest.mark.parametrize(
    ("options", "adapter", "prompt"),
    [
        ({}, 0, ""),
        ({"prompt_name": "text-matching"}, 5, ""),
        ({"prompt_name": "retrieval.passage"}, 2, "tell: "),
        ({"prompt_name": "query"}, 1, "ask: "),
        ({"input_type": "query"}, 1, "ask: "),
        ({"input_type": "document"}, 2, "tell: "),
        ({"prompt_name": "separation", "input_type": "query"}, 3, ""),
        ({"prompt": "mine: ", "input_type": "query"}, 1, "mine: "),
        ({"prompt": "mine: "}, 0, "mine: "),
    ],
)
def test_a_prompt_name_or_the_kind_of_input_chooses_the_adapter(options, adapter, prompt, folder):
    reader, asked = make_preprocessor(spec_of(folder)), TextOptions(**options)
    assert reader.resolve_prompt(asked) == prompt
    assert [item.adapter for item in reader.texts(["tea", [0, 5, 2]], asked)] == [adapter] * 2
    long = ["tea is hot " * 40]
    assert {piece.adapter for pieces in reader.pieces(long, asked) for piece in pieces} == {adapter}
    assert [one.features.adapter for one in reader.chunks([["tea is", "hot"]], asked)] == [adapter]


def test_the_self_check_has_inputs_for_every_adapter_and_for_none(folder):
    spec = spec_of(folder)
    probes = probe_features(make_preprocessor(spec), spec)
    assert {one.adapter for one in probes} == set(range(len(tiny_adapters.TASKS) + 1))


def test_a_task_that_is_not_there_is_refused(folder):
    with pytest.raises(InvalidInputError, match=r"retrieval\.query"):
        make_preprocessor(spec_of(folder)).texts(["tea"], TextOptions(prompt_name="clustering"))


def test_a_model_without_adapters_ignores_names(tmp_path):
    spec = spec_of(tiny.tiny_bert(tmp_path, prompts={"separation": "part: "}))
    (item,) = make_preprocessor(spec).texts(["tea"], TextOptions(prompt_name="separation"))
    assert item.adapter == 0
    assert make_preprocessor(spec).resolve_prompt(TextOptions(prompt_name="query")) == ""
