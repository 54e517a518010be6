"""What SigLIP's files may not say is refused by name; what they leave out is what transformers takes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from forward import spec_of
from infinity_emb.errors import CheckpointError
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.types import Modality, TextOptions
from tiny import edit_json, write_json
from tiny_siglip import DIM, POSITIONS, tiny_siglip


def test_texts_are_filled_up_to_the_positions_whatever_length_is_asked_for(tmp_path):
    spec = spec_of(tiny_siglip(tmp_path))
    assert (spec.dim, spec.max_length, spec.filling.length) == (DIM, POSITIONS, POSITIONS)
    made = make_preprocessor(spec)
    short, long = made.texts(["tea", "tea is hot and lima is the capital of peru"], TextOptions(max_length=4))
    assert short.cost == long.cost == POSITIONS
    assert (short.truncated, long.truncated) == (False, True)
    assert (long.token_ids[4:] == spec.filling.token_id).all()
    assert [item.cost for item in made.pieces(["tea is hot " * 30])[0]] == [POSITIONS] * 7


def test_pictures_are_prepared_as_transformers_does_where_the_file_is_silent(tmp_path):
    folder = tiny_siglip(tmp_path)
    write_json(folder / "preprocessor_config.json", {"size": {"height": 32, "width": 32}, "image_mean": None})
    media = spec_of(folder).media_spec(Modality.IMAGE)
    assert media.positions == 16
    assert media.settings["do_center_crop"] is False
    assert media.settings["image_mean"] == media.settings["image_std"] == [0.5] * 3


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"model_input_names": ["input_ids", "attention_mask"]}, "model_input_names"),
        ({"pad_token": None}, "pad_token"),
        ({"pad_token": "<nowhere>"}, "<nowhere>"),
    ],
)
def test_a_tokenizer_that_fills_texts_up_otherwise_is_refused(changes, field, tmp_path):
    with pytest.raises(CheckpointError, match=field):
        spec_of(tiny_siglip(tmp_path, **changes))


@pytest.mark.parametrize(
    ("section", "field", "value"), [("vision_config", "vision_use_head", False), ("text_config", "projection_size", 7)]
)
def test_towers_without_vectors_of_one_length_are_refused(section, field, value, tmp_path):
    folder = tiny_siglip(tmp_path)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    edit_json(folder / "config.json", **{section: config[section] | {field: value}})
    with pytest.raises(CheckpointError, match=field):
        spec_of(folder)


def test_a_padding_token_may_be_written_as_an_object(tmp_path):
    spec = spec_of(tiny_siglip(tmp_path, tokenizer="gemma", pad_token={"content": "<pad>", "lstrip": False}))
    assert spec.filling.token_id == 0
    assert np.count_nonzero(make_preprocessor(spec).texts([""])[0].token_ids) == 0
