from __future__ import annotations

from infinity_emb.cli.command import main
from infinity_emb.cli.tune import table
from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.engine.tuning import tune as tuning
from infinity_emb.engine.tuning.candidate import Candidate
from infinity_emb.engine.tuning.kept import with_choice
from infinity_emb.engine.tuning.measure import Measured
from infinity_emb.engine.tuning.tune import Trial
from infinity_emb.types import Dtype, InferenceEngine


def test_the_command_measures_prints_and_keeps(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tuning, "_in_process", lambda args, _: Measured(5.0, 1.5, 99.0, 0.99995, str(args.dtype)))
    words = ["--model-id", "some/model", "--cache-folder", str(tmp_path)]
    assert main(["tune", *words, "--engine", "onnxruntime", "--dtype", "float32"]) == 0
    printed = capsys.readouterr().out
    assert "0.999950" in printed
    assert str(tmp_path) in printed
    chosen, path = with_choice(EngineArgs(model_name_or_path="some/model", cache_folder=str(tmp_path)))
    assert path is not None
    assert chosen.engine is InferenceEngine.ONNXRUNTIME


def test_the_table_marks_the_chosen_one_and_tells_why_others_failed():
    good = Trial(Candidate(InferenceEngine.OPENVINO, Dtype.FLOAT32), Measured(5.0, 1.5, 99.0, None, "float32"))
    bad = Trial(Candidate(InferenceEngine.TORCH, Dtype.BFLOAT16, 512), None, "no memory")
    _, first, second = table([good, bad], good).split("\n")
    assert first.split() == ["openvino", "float32", "default", "5.0", "1.50", "99", "-", "chosen"]
    assert second.split() == ["torch", "bfloat16", "512", "-", "-", "-", "-", "no", "memory"]
