"""Checkpoints that read texts and images: what is understood of their files, and what is refused by name."""

from __future__ import annotations

import json

import pytest

from infinity_emb.errors import CheckpointError
from infinity_emb.models.fingerprint import checkpoint_facts
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.joint import media_view
from infinity_emb.models.spec.towers import TEXT, VISION, tower_config
from infinity_emb.types import Modality, Task
from tiny import edit_json, tiny_bert, write_json, write_modules
from tiny_joint import DIM, PATCH, POSITIONS, SIZE, split_tokenizer, tiny_clip


def read(folder, **options):
    return read_spec(Checkpoint(folder, "acme/clip", "local folder"), **options)


@pytest.mark.parametrize("layout", ["plain", "legacy", "modules"])
def test_every_layout_is_a_model_of_texts_and_images(tmp_path, layout):
    spec = read(tiny_clip(tmp_path, layout=layout))
    assert (spec.task, spec.dim, spec.max_length) == (Task.EMBED, DIM, POSITIONS)
    assert spec.modalities == {Modality.TEXT, Modality.IMAGE}
    assert spec.normalized
    media = spec.media_spec(Modality.IMAGE)
    assert media.arrays == {"pixel_values": (3, SIZE, SIZE)}
    assert media.positions == (SIZE // PATCH) ** 2 + 1


def test_the_view_that_reads_images_differs_in_nothing_else(tmp_path):
    spec = read(tiny_clip(tmp_path))
    view = media_view(spec, Modality.IMAGE)
    assert (spec.reads, view.reads) == (Modality.TEXT, Modality.IMAGE)
    assert (view.dim, view.modules, view.weights) == (spec.dim, spec.modules, spec.weights)


def test_options_of_transformers_5_are_read_from_the_file_of_all_processors(tmp_path):
    folder = tiny_clip(tmp_path)
    options = json.loads((folder / "preprocessor_config.json").read_text("utf-8"))
    (folder / "preprocessor_config.json").unlink()
    write_json(folder / "processor_config.json", {"image_processor": options | {"resample": 2}})
    assert read(folder).media[0].settings["resample"] == 2


def test_what_a_file_is_silent_about_is_as_transformers_takes_it():
    assert tower_config({"model_type": "clip", TEXT: {}}, TEXT)["hidden_act"] == "quick_gelu"
    assert tower_config({"model_type": "clip"}, VISION)["patch_size"] == 32
    older = {"model_type": "clip", VISION: {"image_size": 9, "hidden_size": 8}, f"{VISION}_dict": {"image_size": 336}}
    assert tower_config(older, VISION)["image_size"] == 336
    assert tower_config(older, VISION)["hidden_size"] == 768


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "preprocessor_config.json").unlink(), "preprocessor_config.json"),
        (lambda folder: edit_json(folder / "config.json", vision_config={"num_channels": 1}), "num_channels"),
        (lambda folder: edit_json(folder / "config.json", vision_config={"patch_size": 999}), "patch_size"),
        (lambda folder: write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling")]), "Pooling"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(tmp_path, change, words):
    folder = tiny_clip(tmp_path)
    change(folder)
    with pytest.raises(CheckpointError, match=words):
        read(folder)


def test_another_method_of_the_model_is_refused(tmp_path):
    folder = tiny_clip(tmp_path, layout="modules")
    edit_json(folder / "sentence_bert_config.json", modality_config={"text": {"method": "forward"}})
    with pytest.raises(CheckpointError, match=r"modality_config\.text"):
        read(folder)


def test_another_task_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="texts and media"):
        read(tiny_clip(tmp_path), task=Task.RERANK)


def test_models_that_read_text_alone_keep_their_fingerprints(tmp_path):
    facts = checkpoint_facts(read(tiny_bert(tmp_path)), _Hashes())
    assert not {"media", "reads"} & set(facts)
    assert "media" in checkpoint_facts(read(tiny_clip(tmp_path / "clip")), _Hashes())


class _Hashes:
    def of(self, file) -> str:
        return file.name


def test_a_tokenizer_in_two_files_is_one_and_belongs_to_the_fingerprint(tmp_path):
    folder = tiny_clip(tmp_path, layout="legacy") / "0_CLIPModel"
    split_tokenizer(folder)
    facts = checkpoint_facts(read(tmp_path), _Hashes())
    assert {"vocab.json", "merges.txt"} <= set(facts)
    (folder / "merges.txt").unlink()
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        read(tmp_path)
