"""The fingerprint changes with everything that changes a vector, and with nothing else."""

from __future__ import annotations

import os
import shutil

import pytest

import tiny
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.errors import LoadError
from infinity_emb.models import fingerprint as module
from infinity_emb.models.fingerprint import FileHashes, Fingerprints
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec


def of(folder, cache, dtype="float32", onnx_file=None, **checkpoint):
    spec = read_spec(Checkpoint(folder, **{"model_id": "x", "source": "y", **checkpoint}))
    made = Fingerprints(spec, cache, onnx_file)
    try:
        return made.of(dtype, onnx_file)
    finally:
        made.close()


@pytest.fixture
def folder(tmp_path):
    return tiny.tiny_bert(tmp_path / "model", prompts={"q": "find: "}, dense=16)


def test_it_is_sixteen_hexadecimal_digits_and_always_the_same(folder, tmp_path):
    first = of(folder, tmp_path / "cache")
    assert len(first) == 16
    assert int(first, 16)
    assert of(folder, tmp_path / "another") == first


def test_name_place_revision_and_readme_change_nothing(folder, tmp_path):
    first = of(folder, tmp_path / "cache")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "README.md").write_text("other words")
    tiny.edit_json(copy / "config.json", transformers_version="99.0", _name_or_path="/somewhere")
    tiny.edit_json(copy / "tokenizer_config.json", name_or_path="/somewhere")
    assert of(copy, tmp_path / "cache", model_id="z", source="w", revision="abc") == first


CHANGES = {
    "weights": lambda folder: tiny.tiny_bert(folder, seed=1, prompts={"q": "find: "}, dense=16),
    "dense": lambda folder: tiny.write_dense(folder / "2_Dense", 32, 16, __import__("numpy").random.default_rng(9)),
    "dense activation": lambda folder: tiny.edit_json(folder / "2_Dense/config.json", activation_function="torch.nn.Identity"),
    "pooling": lambda folder: tiny.edit_json(folder / "1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True),
    "normalize": lambda folder: tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Dense", "Dense")]),
    "max length": lambda folder: tiny.edit_json(folder / "sentence_bert_config.json", max_seq_length=17),
    "lower case": lambda folder: tiny.edit_json(folder / "sentence_bert_config.json", do_lower_case=True),
    "prompt": lambda folder: tiny.edit_json(folder / "config_sentence_transformers.json", prompts={"q": "seek: "}),
    "default prompt": lambda folder: tiny.edit_json(folder / "config_sentence_transformers.json", default_prompt_name="q"),
    "dimensions": lambda folder: tiny.edit_json(folder / "config_sentence_transformers.json", truncate_dim=8),
    "config": lambda folder: tiny.edit_json(folder / "config.json", layer_norm_eps=1e-3),
    "tokenizer": lambda folder: tiny.edit_json(folder / "tokenizer.json", normalizer=None),
    "tokenizer settings": lambda folder: tiny.edit_json(folder / "tokenizer_config.json", do_lower_case=False),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_a_vector_changes_it(change, folder, tmp_path):
    first = of(folder, tmp_path / "cache")
    CHANGES[change](folder)
    assert of(folder, tmp_path / "cache") != first


def test_the_number_format_and_another_onnx_file_change_it(folder, tmp_path):
    (folder / "onnx").mkdir()
    (folder / "onnx/small.onnx").write_bytes(b"one")
    found = {of(folder, tmp_path / "cache"), of(folder, tmp_path / "cache", dtype="bfloat16")}
    found.add(of(folder, tmp_path / "cache", onnx_file="onnx/small.onnx"))
    (folder / "onnx/small.onnx").write_bytes(b"another")
    found.add(of(folder, tmp_path / "cache", onnx_file="onnx/small.onnx"))
    assert len(found) == 4


def test_a_file_is_read_once_and_again_when_it_changes(tmp_path, monkeypatch):
    read = []
    digest = module._digest
    monkeypatch.setattr(module, "_digest", lambda file: read.append(file) or digest(file))
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    first = FileHashes(tmp_path / "cache").of(file)
    assert FileHashes(tmp_path / "cache").of(file) == first
    assert len(read) == 1
    file.write_bytes(b"two")
    os.utime(file, ns=(1, 1))
    assert FileHashes(tmp_path / "cache").of(file) != first
    assert len(read) == 2


def test_a_kept_hash_that_is_cut_short_is_made_again(tmp_path):
    file = tmp_path / "weights"
    file.write_bytes(b"one")
    first = FileHashes(tmp_path / "cache").of(file)
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_text(first[:20])
    assert FileHashes(tmp_path / "cache").of(file) == first


def load(folder, cache, **options):
    args = EngineArgs(model_name_or_path=str(folder), engine="openvino", cache_folder=str(cache), threads=1, **options)
    engine = AsyncEmbeddingEngine.from_args(args)
    engine.close()
    return engine.card.extra["fingerprint"]


def test_the_expected_model_is_served_and_another_is_refused_by_both_names(folder, tmp_path):
    first = load(folder, tmp_path / "cache")
    assert first == of(folder, tmp_path / "cache")
    assert load(folder, tmp_path / "cache", expect_fingerprint=first) == first
    other = load(tiny.tiny_bert(tmp_path / "other", seed=3), tmp_path / "cache")
    with pytest.raises(LoadError, match=f"fingerprint {first}, but --expect-fingerprint asks for {other}") as caught:
        load(folder, tmp_path / "cache", expect_fingerprint=other)
    assert caught.value.param == "expect_fingerprint"
