from __future__ import annotations

import numpy as np
import pytest

import tiny_sound
from infinity_emb.models.sound.features import SpectrogramReader, fuse, shrink
from infinity_emb.models.sound.mel import htk_bank, log_mel, slaney_bank
from infinity_emb.models.spec.sound import SoundSpec


def spec(*, fusion: bool, padding: str = "repeatpad") -> SoundSpec:
    return SoundSpec(8000, 8000, 100, 256, 20, 50.0, 3500.0, fusion, padding)


def noise(samples: int) -> np.ndarray:
    return tiny_sound.noise(samples / 8000 + 1, rate=8000)[:samples, 0]


@pytest.mark.parametrize("bank", [htk_bank, slaney_bank])
def test_a_tone_is_loudest_in_the_band_around_it(bank):
    filters = bank(1024, 64, 48_000, 50.0, 14_000.0)
    tone = tiny_sound.tone(3000.0, seconds=0.5)[:, 0]
    loudest = log_mel(tone, filters, 480)[20].argmax()
    centre_hz = np.average(np.linspace(0, 24_000, 513), weights=filters[:, loudest])
    assert abs(centre_hz - 3000) < 150


def test_silence_is_minus_100_decibels():
    assert (log_mel(np.zeros(8000, np.float32), htk_bank(256, 20, 8000, 50.0, 3500.0), 100) == -100).all()


def test_a_long_sound_in_blocks_is_the_same_as_frame_by_frame(monkeypatch):
    bank = htk_bank(256, 20, 8000, 50.0, 3500.0)
    at_once = log_mel(noise(80_000), bank, 100)
    monkeypatch.setattr("infinity_emb.models.sound.mel._BLOCK_FRAMES", 1)
    np.testing.assert_allclose(log_mel(noise(80_000), bank, 100), at_once, atol=1e-4)


@pytest.mark.parametrize(("fusion", "channels"), [(False, 1), (True, 4)])
@pytest.mark.parametrize("samples", [1, 500, 3999, 8000, 8001, 8100, 30_000])
def test_every_length_gives_the_same_shape_and_the_same_numbers_each_time(fusion, channels, samples):
    reader = SpectrogramReader(spec(fusion=fusion))
    first = reader(noise(samples))
    assert first.shape == (channels, 81, 20)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(reader(noise(samples)), first)


def test_without_fusion_a_long_sound_is_its_first_window():
    reader = SpectrogramReader(spec(fusion=False))
    np.testing.assert_array_equal(reader(noise(30_000)), reader(noise(30_000)[:8000]))


def test_with_fusion_the_windows_come_from_the_middle_of_each_third():
    whole = np.arange(300, dtype=np.float32)[:, None]
    fused = fuse(whole, 31)  # a window may begin at 0..269
    assert [channel[0, 0] for channel in fused[1:]] == [45, 135, 225]
    assert all((np.diff(channel[:, 0]) == 1).all() for channel in fused[1:])


def test_the_shrunk_sound_spans_the_whole():
    shrunk = shrink(np.arange(300, dtype=np.float32)[:, None], 30)[:, 0]
    np.testing.assert_allclose(shrunk, 4.5 + 10 * np.arange(30), atol=1e-4)


@pytest.mark.parametrize(
    ("padding", "loud"), [("pad", 3000), ("repeatpad", 6000), ("repeat", 8000)], ids=["pad", "repeatpad", "repeat"]
)
def test_a_short_sound_is_filled_up_as_the_model_wants_it(padding, loud):
    (mel,) = SpectrogramReader(spec(fusion=False, padding=padding))(noise(3000))
    silent = (mel == -100).all(axis=1)
    assert abs(int((~silent).sum()) * 100 - loud) <= 300
