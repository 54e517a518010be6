"""The fixed images and sounds of the self-check: files made of numbers, as different from each other as they can be."""

from __future__ import annotations

import io
import wave
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.types import Modality

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from infinity_emb.models.features import Features
    from infinity_emb.models.preprocess.media import MediaPreprocessor

EDGE = 240  # of a square image
RATE = 32_000  # samples a second


def media_features(modality: Modality, preprocessor: MediaPreprocessor) -> list[Features]:
    """The probes of one modality as the model would read them."""
    made = {Modality.IMAGE: image_files, Modality.AUDIO: sound_files}[modality]()
    return [preprocessor.read(content, index) for index, content in enumerate(made)]


def image_files() -> list[bytes]:
    """Twelve images: flat, gradients, shapes, stripes, waves and noise, square, wide and tall."""
    down, across = np.mgrid[0:EDGE, 0:EDGE] / EDGE
    away = np.hypot(down - 0.5, across - 0.5)
    random = np.random.default_rng(1)
    coarse = random.random((12, 12, 3)).repeat(EDGE // 12, 0).repeat(EDGE // 12, 1)
    pictures = [
        np.zeros((EDGE, EDGE, 3)),
        np.ones((EDGE, EDGE, 3)),
        _colours(across, down, 1 - across),
        _colours(1 - away, away, 0.2 + 0 * away),
        _colours(away < 0.3, away < 0.2, away < 0.1),
        _colours((across > 0.3) & (down > 0.6), down > 0.8, across < 0.1),
        _colours(*[(across * 15 + down * 15) % 2 < 1] * 3),
        _colours((across * 8) % 1, (across * 8) % 1 < 0.5, down),
        _colours(*(0.5 + 0.5 * np.sin(40 * place) for place in (away, across, down))),
        coarse,
        random.random((EDGE, EDGE * 2, 3)),
        _colours(down**2, coarse[..., 0] * across, 1 - down)[:, : EDGE // 2],
    ]
    return [_image_file(picture) for picture in pictures]


def sound_files() -> list[bytes]:
    """Twelve sounds of 0.3 to 12 seconds: tones, chords, chirps, clicks, a plucked string and noises."""
    random = np.random.default_rng(2)

    def noise(seconds: float) -> NDArray[np.float64]:
        return random.uniform(-1, 1, int(seconds * RATE))

    def sung(seconds: float, wave_of: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> NDArray[np.float64]:
        return wave_of(np.arange(int(seconds * RATE)) / RATE)

    turn = 2 * np.pi
    sounds = [
        sung(2, lambda t: np.sin(turn * 440 * t)),
        sung(1, lambda t: 0.05 * np.sin(turn * 110 * t)),
        sung(3, lambda t: np.sin(turn * np.outer(t, (261.6, 329.6, 392.0))).mean(axis=1)),
        sung(12, lambda t: np.sin(turn * (50 + 300 * t) * t)),
        sung(1.5, lambda t: np.sin(turn * (9000 - 2500 * t) * t)),
        sung(2, lambda t: 0.7 * np.sign(np.sin(turn * 150 * t))),
        sung(4, lambda t: np.sin(turn * 1200 * t) * (0.5 + 0.5 * np.sin(turn * 3 * t))),
        sung(2, lambda t: np.sin(turn * 220 * t) * np.exp(-4 * (t % 0.5))),
        sung(1, lambda t: np.where(t % 0.1 < 0.001, 0.9, 0.0)),
        noise(0.3),
        noise(3).cumsum() / 300,
        noise(11) * sung(11, lambda t: 0.5 + 0.5 * np.sin(turn * 0.5 * t)),
    ]
    return [_sound_file(sound) for sound in sounds]


def _colours(red: NDArray[np.generic], green: NDArray[np.generic], blue: NDArray[np.generic]) -> NDArray[np.float64]:
    return np.stack([red, green, blue], axis=-1).astype(np.float64)


def _image_file(picture: NDArray[np.float64]) -> bytes:
    """A portable pixmap of numbers from 0 to 1."""
    height, width = picture.shape[:2]
    return f"P6 {width} {height} 255\n".encode() + (picture.clip(0, 1) * 255).astype(np.uint8).tobytes()


def _sound_file(samples: NDArray[np.float64]) -> bytes:
    """A WAV file of numbers from -1 to 1."""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())
    return content.getvalue()
