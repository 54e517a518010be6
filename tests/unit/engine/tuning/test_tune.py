from __future__ import annotations

import json

import pytest

from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.engine.tuning import candidate, kept
from infinity_emb.engine.tuning.candidate import BUDGETS_TOKENS, Candidate, candidates, shapes
from infinity_emb.engine.tuning.kept import keep, path_of, with_choice
from infinity_emb.engine.tuning.measure import CALL_ITEMS, Measured, measure, texts
from infinity_emb.engine.tuning.tune import Trial, best_of, tune
from infinity_emb.errors import LoadError, StorageError
from infinity_emb.types import Device, Dtype, InferenceEngine

FIGURES = Measured(100.0, 2.0, 300.0, 0.9999, "float32")


@pytest.fixture
def args(tmp_path):
    return EngineArgs(model_name_or_path="some/model", cache_folder=str(tmp_path))


@pytest.fixture(autouse=True)
def machine(monkeypatch):
    """Two engines are installed, and one of them computes bfloat16."""
    monkeypatch.setattr(candidate, "_fast", lambda engine, _: (Dtype.BFLOAT16,) if engine == "openvino" else ())
    monkeypatch.setattr(candidate.importlib.util, "find_spec", lambda name: None if name == "torch" else name)


def trial(items_per_s, latency_ms=1.0, failure=""):
    measured = Measured(items_per_s, latency_ms, 100.0, None, "float32")
    return Trial(Candidate(InferenceEngine.OPENVINO, Dtype.FLOAT32), measured, failure)


def test_every_installed_engine_is_tried_in_float32_and_what_is_faster(args):
    assert candidates(args) == [
        Candidate(InferenceEngine.OPENVINO, Dtype.FLOAT32),
        Candidate(InferenceEngine.OPENVINO, Dtype.BFLOAT16),
        Candidate(InferenceEngine.ONNXRUNTIME, Dtype.FLOAT32),
    ]


def test_what_was_asked_for_is_not_varied():
    asked = EngineArgs(model_name_or_path="m", engine="onnxruntime", dtype="int8", max_batch_tokens=99)
    (only,) = candidates(asked)
    assert only == Candidate(InferenceEngine.ONNXRUNTIME, Dtype.INT8, 99)
    assert shapes(only) == []


def test_an_engine_of_the_cpu_is_no_candidate_for_a_gpu():
    asked = EngineArgs(model_name_or_path="m", device=Device.CUDA)
    assert {one.engine for one in candidates(asked)} == {InferenceEngine.ONNXRUNTIME}


def test_batch_sizes_are_tried_for_the_best_engine_alone(args):
    speeds = {"openvino": 50.0, "onnxruntime": 70.0}
    left = []

    def try_one(tried, _):
        faster = 2 if tried.max_batch_tokens == BUDGETS_TOKENS[1] else 1
        return Measured(speeds[tried.engine] * faster, 1.0, 1.0, None, str(tried.dtype))

    best, trials = tune(args, 1.0, lambda _, count: left.append(count), try_one)
    assert best.candidate == Candidate(InferenceEngine.ONNXRUNTIME, Dtype.FLOAT32, BUDGETS_TOKENS[1])
    assert [one.candidate.max_batch_tokens for one in trials] == [None, None, None, *BUDGETS_TOKENS]
    assert {one.candidate.engine for one in trials[3:]} == {InferenceEngine.ONNXRUNTIME}
    assert left == [5, 4, 3, 2, 1, 0]


def test_a_candidate_that_fails_or_gives_wrong_results_is_not_chosen(args):
    def try_one(tried, _):
        if tried.engine is InferenceEngine.ONNXRUNTIME:
            raise LoadError("no graph")
        return Measured(999.0 if tried.dtype is Dtype.BFLOAT16 else 1.0, 1.0, 1.0, None, "float32")

    best, trials = tune(args, 1.0, lambda *_: None, try_one)
    assert best.candidate.dtype is Dtype.FLOAT32
    assert [one.failure for one in trials[:3]] == ["", "its results are not right; float32 would be served", "no graph"]


def test_without_any_usable_candidate_the_reasons_are_told():
    with pytest.raises(LoadError, match="openvino float32: no memory"):
        best_of([trial(1.0, failure="no memory")])


def test_of_those_nearly_as_fast_the_one_with_the_shortest_latency_is_chosen():
    fast, prompt, slow = trial(100.0, 9.0), trial(98.0, 2.0), trial(90.0, 1.0)
    assert best_of([fast, prompt, slow]) is prompt


def test_the_choice_is_used_at_the_next_start(args):
    path = keep(args, Candidate(InferenceEngine.ONNXRUNTIME, Dtype.FLOAT32, 1024), FIGURES)
    chosen, found = with_choice(args)
    assert found == path
    assert (chosen.engine, chosen.dtype, chosen.max_batch_tokens) == ("onnxruntime", "float32", 1024)
    assert json.loads(path.read_text())["measured"]["items_per_s"] == 100.0


@pytest.mark.parametrize(
    "said", [{"engine": "openvino"}, {"dtype": "float32"}, {"tuned": False}, {"revision": "other"}, {"threads": 1}]
)
def test_what_was_asked_for_wins(args, said):
    keep(args, Candidate(InferenceEngine.ONNXRUNTIME, Dtype.FLOAT32), FIGURES)
    asked = EngineArgs(**{**args.to_dict(), **said})
    assert with_choice(asked) == (asked, None)


def test_a_batch_size_that_was_asked_for_stays(args):
    keep(args, Candidate(InferenceEngine.ONNXRUNTIME, Dtype.FLOAT32, 1024), FIGURES)
    asked = EngineArgs(**{**args.to_dict(), "max_batch_tokens": 77})
    assert with_choice(asked)[0].max_batch_tokens == 77


def test_without_a_choice_nothing_changes(args):
    assert with_choice(args) == (args, None)


def test_a_choice_of_another_machine_is_not_used_and_the_log_says_so(args, monkeypatch, caplog):
    keep(args, Candidate(InferenceEngine.ONNXRUNTIME, Dtype.FLOAT32), FIGURES)
    monkeypatch.setattr(kept, "available_cores", lambda: 1000)
    assert with_choice(args) == (args, None)
    assert "another machine" in caplog.text


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"engine": "x", "dtype": "float32", "machine": []}', '{"engine": [], "dtype": {}, "machine": 1}'],
)
def test_a_file_that_is_no_choice_is_not_used_and_the_log_says_so(args, caplog, content):
    path = path_of(args)
    path.parent.mkdir()
    path.write_text(content)
    assert with_choice(args) == (args, None)
    assert "not used" in caplog.text


def test_a_choice_that_cannot_be_kept_is_an_error(args, tmp_path):
    (tmp_path / "tuned").write_text("a file in the way")
    with pytest.raises(StorageError, match="--cache-folder"):
        keep(args, Candidate(InferenceEngine.ONNXRUNTIME, Dtype.FLOAT32), FIGURES)


@pytest.mark.parametrize("task", ["embed", "rerank", "classify"])
def test_a_measurement_gives_speed_latency_and_memory(task):
    measured = measure(EngineArgs(model_name_or_path="m", engine="dummy", task=task), 0.02)
    assert measured.items_per_s > 0
    assert measured.latency_ms > 0
    assert measured.memory_mb > 1
    assert measured.dtype == "float32"


def test_measured_texts_are_short_and_long():
    lengths = sorted(len(text.split()) for text in texts())
    assert len(lengths) == CALL_ITEMS
    assert lengths[0] < 10
    assert lengths[-1] > 150
