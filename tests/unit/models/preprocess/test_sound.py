from __future__ import annotations

import numpy as np
import pytest

import tiny_sound
from forward import spec_of
from infinity_emb.errors import MediaError, MissingExtraError
from infinity_emb.models.preprocess.media import MediaLimits, make_media_preprocessor
from infinity_emb.models.spec.sound import SPECTROGRAMS

LIMITS = MediaLimits(pixels=1)


@pytest.fixture(scope="module")
def media(tmp_path_factory):
    (media,) = spec_of(tiny_sound.tiny_clap(tmp_path_factory.mktemp("clap"))).media
    return media


@pytest.fixture(scope="module")
def reader(media):
    return make_media_preprocessor(media, LIMITS)


def test_a_sound_becomes_spectrograms_and_costs_the_tokens_of_the_last_stage(reader, media):
    features = reader.read(tiny_sound.encode(tiny_sound.tone()), 0)
    assert features.arrays[SPECTROGRAMS].shape == media.arrays[SPECTROGRAMS]
    assert features.cost == media.positions
    assert not features.truncated


def test_what_the_model_is_warmed_up_with_has_the_same_shape(reader, media):
    sample = reader.sample()
    assert sample.arrays[SPECTROGRAMS].shape == media.arrays[SPECTROGRAMS]
    assert sample.cost == media.positions


@pytest.mark.parametrize("as_type", [bytes, bytearray, memoryview])
def test_all_kinds_of_bytes_are_read(reader, as_type):
    file = tiny_sound.encode(tiny_sound.tone())
    same = reader.read(as_type(file), 0).arrays[SPECTROGRAMS]
    np.testing.assert_array_equal(same, reader.read(file, 0).arrays[SPECTROGRAMS])


@pytest.mark.parametrize("other", [np.zeros(100, np.float32), None, 7])
def test_what_is_no_file_is_refused_by_its_index(reader, other):
    with pytest.raises(MediaError, match="Item 4 is no sound") as caught:
        reader.read(other, 4)
    assert caught.value.item_index == 4


def test_a_sound_whose_power_float32_cannot_hold_is_refused(reader):
    file = tiny_sound.encode(tiny_sound.tone() * np.float32(1e37), subtype="FLOAT")
    with pytest.raises(MediaError, match="too loud"):
        reader.read(file, 0)


@pytest.mark.parametrize("library", ["soundfile", "soxr"])
def test_a_model_of_sounds_does_not_load_without_its_libraries(media, monkeypatch, library):
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(MissingExtraError, match=r"infinity_emb\[audio\]"):
        make_media_preprocessor(media, LIMITS)
