from __future__ import annotations

import pytest

import tiny_sound
from forward import spec_of
from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.sound import FILE, SPECTROGRAMS, read_options
from infinity_emb.types import Modality, Task
from tiny import edit_json, write_json

LAION = tiny_sound.SETTINGS | {
    "feature_size": 64,
    "hop_length": 480,
    "max_length_s": 10,
    "nb_max_samples": 480_000,
    "truncation": "rand_trunc",
}


@pytest.fixture
def folder(tmp_path):
    return tiny_sound.tiny_clap(tmp_path)


def refusal(folder) -> str:
    with pytest.raises(CheckpointError) as caught:
        spec_of(folder)
    return caught.value.message


@pytest.mark.parametrize(("fusion", "channels"), [(False, 1), (True, 4)])
def test_a_checkpoint_reads_texts_and_sounds_into_unit_vectors_of_one_length(tmp_path, fusion, channels):
    spec = spec_of(tiny_sound.tiny_clap(tmp_path, fusion=fusion))
    assert spec.modalities == {Modality.TEXT, Modality.AUDIO}
    assert (spec.dim, spec.normalized, spec.task) == (tiny_sound.DIM, True, Task.EMBED)
    (media,) = spec.media
    assert media.arrays == {SPECTROGRAMS: (channels, tiny_sound.FRAMES, tiny_sound.MELS)}
    assert media.positions == 64  # the last stage's grid of 8 x 8


def test_texts_may_be_as_long_as_the_table_of_positions_behind_the_padding_id(folder):
    edit_json(folder / "tokenizer_config.json", model_max_length=10**30)
    assert spec_of(folder).max_length == 64


def test_settings_as_published_are_read():
    options = read_options(LAION)
    assert (options.rate, options.window, options.frames, options.channels) == (48_000, 480_000, 1001, 1)
    assert options.most_samples == 480_000
    assert read_options(LAION | {"truncation": "fusion"}).most_samples == 300 * 48_000


def test_a_file_that_says_nothing_means_the_references_defaults():
    options = read_options({})
    assert (options.rate, options.mels, options.lowest_hz, options.highest_hz) == (48_000, 64, 0, 14_000)
    assert options.fusion
    assert options.padding == "repeatpad"


def test_the_file_that_transformers_5_writes_is_read(folder):
    (folder / FILE).unlink()
    settings = tiny_sound.SETTINGS | {"truncation": "rand_trunc", "sampling_rate": 32_000, "frequency_max": 12_000}
    write_json(folder / "processor_config.json", {"feature_extractor": settings, "processor_class": "ClapProcessor"})
    (media,) = spec_of(folder).media
    assert media.arrays[SPECTROGRAMS][1] == 32_000 // tiny_sound.HOP + 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"feature_extractor_type": "WhisperFeatureExtractor"}, "ClapFeatureExtractor"),
        ({"truncation": "center"}, "rand_trunc"),
        ({"padding": "reflect"}, "repeatpad"),
        ({"fft_window_size": 1023}, "even"),
        ({"frequency_max": 30_000}, "sampling_rate"),
        ({"feature_size": 32}, "num_mel_bins"),
        ({"truncation": "fusion"}, "enable_fusion"),
        ({"sampling_rate": "48k"}, "sampling_rate"),
    ],
)
def test_settings_that_are_not_computed_are_refused_with_the_field_and_what_is_supported(folder, changes, words):
    edit_json(folder / FILE, **changes)
    assert words in refusal(folder)


def test_a_missing_file_is_named(folder):
    (folder / FILE).unlink()
    assert FILE in refusal(folder)


def test_a_task_that_gives_no_vectors_is_refused(folder):
    from infinity_emb.models.hub.checkpoint import Checkpoint
    from infinity_emb.models.spec import read_spec

    with pytest.raises(CheckpointError, match="rerank"):
        read_spec(Checkpoint(folder, str(folder), "local folder"), task=Task.RERANK)
