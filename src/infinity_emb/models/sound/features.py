"""From samples to the spectrograms that CLAP reads: transformers' `ClapFeatureExtractor` without its dice.

The reference cuts long sounds at random places. Here the same sound always gives the same numbers: without fusion the
window at the beginning, with fusion the middle one of each third (docs/decisions/0007-sounds-without-dice.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.sound.mel import htk_bank, log_mel, slaney_bank

if TYPE_CHECKING:
    from infinity_emb.models.spec.sound import SoundSpec
    from infinity_emb.types import FloatArray


class SpectrogramReader:
    """Makes the spectrograms of one model. Holds nothing that changes, so any number of threads may use it at once.

    Args:
        spec: What the model wants.
    """

    def __init__(self, spec: SoundSpec) -> None:
        self._spec = spec
        make_bank = htk_bank if spec.fusion else slaney_bank
        self._bank = make_bank(spec.fft_size, spec.mels, spec.rate, spec.lowest_hz, spec.highest_hz)

    def __call__(self, samples: FloatArray) -> FloatArray:
        """Mono samples at the model's rate, at least one → float32 `[channels, frames, mels]`."""
        spec = self._spec
        if not spec.fusion:
            return self._mel(_fill(samples[: spec.window], spec))[None]
        if len(samples) <= spec.window:
            return np.repeat(self._mel(_fill(samples, spec))[None], 4, axis=0)
        return fuse(self._mel(samples), spec.frames)

    def _mel(self, samples: FloatArray) -> FloatArray:
        return log_mel(samples, self._bank, self._spec.hop)


def fuse(whole: FloatArray, frames: int) -> FloatArray:
    """A long spectrogram `[n, mels]` → the whole shrunk, then a window of each third of it: `[4, frames, mels]`."""
    starts = len(whole) - frames + 1  # places where a window may begin
    if starts == 1:
        return np.repeat(whole[None], 4, axis=0)
    thirds = [third if len(third) else np.zeros(1, np.int64) for third in np.array_split(np.arange(starts), 3)]
    middles = [int(third[len(third) // 2]) for third in thirds]
    return np.stack([shrink(whole, frames), *(whole[start : start + frames] for start in middles)])


def shrink(whole: FloatArray, frames: int) -> FloatArray:
    """Linear interpolation along time, pixel centres aligned (`torch.nn.functional.interpolate`, bilinear)."""
    scale = np.float32(len(whole) / frames)
    # rounded to float32 once, like the reference: rounding moves a place by up to 1e-4 frames in long sounds
    places = np.maximum((np.arange(frames) + 0.5) * np.float64(scale) - 0.5, 0).astype(np.float32)
    before = places.astype(np.int64)
    after = np.minimum(before + 1, len(whole) - 1)
    share = (places - before.astype(np.float32))[:, None]
    mixed: FloatArray = whole[before] * (np.float32(1) - share) + whole[after] * share
    return mixed


def _fill(samples: FloatArray, spec: SoundSpec) -> FloatArray:
    """A short sound, repeated and then followed by silence as the model wants it."""
    times = spec.window // len(samples)
    if times >= 1 and spec.padding == "repeat":
        samples = np.tile(samples, times + 1)[: spec.window]
    elif spec.padding == "repeatpad":
        samples = np.tile(samples, times)
    return np.pad(samples, (0, spec.window - len(samples)))
