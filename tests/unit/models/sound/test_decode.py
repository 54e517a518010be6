from __future__ import annotations

import io
import struct

import numpy as np
import pytest
import soundfile
import soxr

import tiny_sound
from infinity_emb.errors import MediaError, MissingExtraError
from infinity_emb.models.sound import decode as module
from infinity_emb.models.sound.decode import decode

RATE = 48_000
SECOND = tiny_sound.tone()


def refusal(data: bytes) -> str:
    with pytest.raises(MediaError) as caught:
        decode(data, RATE, RATE, item_index=3)
    assert caught.value.item_index == 3
    assert caught.value.message.startswith("Item 3 ")
    return caught.value.message


@pytest.mark.parametrize(
    ("container", "subtype", "tolerance"),
    [
        ("WAV", "FLOAT", 0),
        ("WAV", "PCM_24", 2**-22),
        ("WAV", "PCM_16", 2**-14),
        ("FLAC", "PCM_24", 2**-22),
        ("AIFF", "PCM_16", 2**-14),
        ("OGG", "VORBIS", 0.05),
        ("MP3", "MPEG_LAYER_III", 0.05),
    ],
)
def test_every_readable_format_gives_the_samples_that_went_in(container, subtype, tolerance):
    found = decode(tiny_sound.encode(SECOND, container, subtype), RATE, RATE)
    middle = slice(4800, -4800)  # lossy formats blur the ends
    assert found.values.dtype == np.float32
    assert np.abs(found.values[middle] - SECOND[middle, 0]).max() <= tolerance


@pytest.mark.parametrize("channels", [1, 2, 6])
def test_channels_are_averaged(channels):
    together = SECOND * np.linspace(0, 1, channels, dtype=np.float32) if channels > 1 else SECOND / 2
    found = decode(tiny_sound.encode(together, subtype="FLOAT"), RATE, RATE)
    np.testing.assert_allclose(found.values, SECOND[:, 0] / 2, atol=1e-6)


@pytest.mark.parametrize("own_rate", [16_000, 44_100, 96_000])
def test_another_rate_is_converted_to_within_5e5_of_the_same_sound_recorded_at_that_rate(own_rate):
    recorded = tiny_sound.tone(rate=own_rate)
    found = decode(tiny_sound.encode(recorded, subtype="FLOAT", rate=own_rate), RATE, RATE)
    middle = slice(4800, -4800)  # beyond the ends there is nothing for the filter to see
    assert len(found.values) == RATE
    assert np.abs(found.values[middle] - SECOND[middle, 0]).max() < 5e-5


def test_the_beginning_of_a_long_file_is_the_beginning_of_the_whole_converted_at_once():
    recorded = tiny_sound.noise(3, rate=44_100)
    found = decode(tiny_sound.encode(recorded, subtype="FLOAT", rate=44_100), RATE, RATE)
    np.testing.assert_array_equal(found.values, soxr.resample(recorded[:, 0], 44_100, RATE)[:RATE])
    assert found.cut


def test_a_file_of_just_the_length_is_not_cut():
    assert not decode(tiny_sound.encode(SECOND), RATE, RATE).cut


def test_no_more_of_a_file_is_decoded_than_is_kept(monkeypatch):
    read: list[int] = []

    class Counting(soundfile.SoundFile):
        def read(self, frames=-1, **options):
            block = super().read(frames, **options)
            read.append(len(block))
            return block

    monkeypatch.setattr(soundfile, "SoundFile", Counting)
    decode(tiny_sound.encode(np.zeros((60 * RATE, 1), np.float32), "FLAC"), RATE, RATE)
    assert sum(read) < 8 * RATE


def test_a_small_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_NUMBERS", RATE)
    assert "all 2 channels" in refusal(tiny_sound.encode(tiny_sound.tone(channels=2), "FLAC"))


def test_an_empty_file_is_refused():
    assert "empty" in refusal(b"")


def test_a_file_without_samples_is_refused():
    assert "no samples" in refusal(tiny_sound.encode(np.zeros((0, 1), np.float32)))


def test_a_format_that_is_not_read_is_named_with_those_that_are():
    message = refusal(b"\0\0\0\x20ftypM4A ")
    assert "MPEG-4" in message
    assert "WAV, FLAC, OGG, MP3" in message
    assert "not known" in refusal(b"just a sentence")


@pytest.mark.parametrize("container", ["FLAC", "OGG"])
def test_a_file_that_ends_too_early_is_refused(container):
    whole = tiny_sound.encode(tiny_sound.noise(2), container)
    refusal(whole[: 200 if container == "OGG" else len(whole) // 2])


@pytest.mark.parametrize("container", ["WAV", "FLAC", "OGG", "MP3", "AIFF"])
def test_a_damaged_file_is_decoded_or_refused_and_nothing_else(container):
    whole = tiny_sound.encode(tiny_sound.tone(seconds=0.05), container)
    chance = np.random.default_rng(0)
    outcomes = set()
    for _ in range(200):
        damaged = bytearray(whole)
        for place in chance.integers(0, min(len(whole), 200), 4):
            damaged[place] = chance.integers(0, 256)
        if chance.random() < 0.3:
            del damaged[chance.integers(4, len(damaged)) :]
        try:
            samples = decode(bytes(damaged), RATE, RATE)
        except MediaError:
            outcomes.add("refused")
        else:
            outcomes.add("decoded")
            assert 0 < len(samples.values) <= RATE
    assert "refused" in outcomes


def test_a_header_without_data_is_refused_in_the_librarys_words():
    assert "data" in refusal(b"RIFF\x04\0\0\0WAVEfmt ")


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_samples_that_are_not_finite_are_refused(bad):
    samples = np.zeros((100, 1))
    samples[50] = bad
    assert "not finite" in refusal(tiny_sound.encode(samples, subtype="DOUBLE"))


@pytest.mark.parametrize("rate", [1, 4_000_000])
def test_an_absurd_sampling_rate_is_refused(rate):
    file = bytearray(tiny_sound.encode(SECOND))
    file[24:28] = struct.pack("<I", rate)
    assert "sampling rate" in refusal(bytes(file))


def test_a_missing_library_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "soundfile", None)
    with pytest.raises(MissingExtraError, match=r"infinity_emb\[audio\]"):
        decode(io.BytesIO().getvalue(), RATE, RATE)
