"""Mel filter banks and log-mel spectrograms, number for number those of transformers' `audio_utils`.

Sources: Stevens et al. 1937 for the scale; the HTK book and Slaney's Auditory Toolbox for its two formulas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from infinity_emb.types import FloatArray

    Doubles = NDArray[np.float64]

FLOOR = 1e-10  # smallest power, -100 dB
_BLOCK_FRAMES = 512  # transformed at once: bounds the memory of long sounds
# Slaney's scale is linear up to here and logarithmic above.
_LINEAR_HZ, _LINEAR_MELS, _HZ_A_MEL = 1000.0, 15.0, 200.0 / 3.0
_LOG_STEP = np.log(6.4) / 27.0


def htk_bank(fft_size: int, mels: int, rate: int, lowest_hz: float, highest_hz: float) -> Doubles:
    """Triangles of height 1 on the HTK scale: float64 `[fft_size/2 + 1, mels]`."""
    low, high = 2595.0 * np.log10(1.0 + np.array([lowest_hz, highest_hz]) / 700.0)
    corners = 700.0 * (np.power(10, np.linspace(low, high, mels + 2) / 2595.0) - 1.0)
    return _triangles(corners, fft_size, rate)


def slaney_bank(fft_size: int, mels: int, rate: int, lowest_hz: float, highest_hz: float) -> Doubles:
    """Triangles of equal area on Slaney's scale: float64 `[fft_size/2 + 1, mels]`."""
    low, high = _slaney_mels(lowest_hz), _slaney_mels(highest_hz)
    places = np.linspace(low, high, mels + 2)
    bent = _LINEAR_HZ * np.exp(_LOG_STEP * (places - _LINEAR_MELS))
    corners = np.where(places >= _LINEAR_MELS, bent, places * _HZ_A_MEL)
    return _triangles(corners, fft_size, rate) * (2.0 / (corners[2:] - corners[:-2]))


def log_mel(samples: FloatArray, bank: Doubles, hop: int) -> FloatArray:
    """Power in decibels a mel band: samples `[n]` → float32 `[1 + n // hop, mels]`.

    Frames are centred on every `hop`-th sample, the ends mirrored, under a periodic Hann window as long as the
    transform. As in the reference the spectrum is rounded to float32 before its power is taken.
    """
    fft_size = 2 * (bank.shape[0] - 1)
    window = np.hanning(fft_size + 1)[:-1]
    padded = np.pad(samples, fft_size // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, fft_size)[::hop]
    result = np.empty((len(frames), bank.shape[1]), np.float32)
    for start in range(0, len(frames), _BLOCK_FRAMES):
        block = frames[start : start + _BLOCK_FRAMES]
        with np.errstate(over="ignore", invalid="ignore"):  # absurdly loud samples give no finite result
            spectrum = np.fft.rfft(block.astype(np.float64) * window).astype(np.complex64)
            power = np.abs(spectrum, dtype=np.float64) ** 2
            result[start : start + len(block)] = 10.0 * np.log10(np.maximum(power @ bank, FLOOR))
    return result


def _slaney_mels(hertz: float) -> float:
    if hertz < _LINEAR_HZ:
        return hertz / _HZ_A_MEL
    return float(_LINEAR_MELS + np.log(hertz / _LINEAR_HZ) / _LOG_STEP)


def _triangles(corners: Doubles, fft_size: int, rate: int) -> Doubles:
    """Each filter rises from one corner to the next and falls to the one after that."""
    bins = np.linspace(0, rate // 2, fft_size // 2 + 1)
    distances = corners[None, :] - bins[:, None]
    widths = np.diff(corners)
    rising = -distances[:, :-2] / widths[:-1]
    falling = distances[:, 2:] / widths[1:]
    filters: Doubles = np.maximum(0.0, np.minimum(rising, falling))
    return filters
