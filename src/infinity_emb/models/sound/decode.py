"""From the bytes of a sound file to mono samples at a model's rate; never more of it than the model reads."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb import extras
from infinity_emb.errors import MediaError
from infinity_emb.models.sound.container import READABLE, container_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infinity_emb.types import FloatArray

_PURPOSE = "Reading sounds"
_BLOCK_NUMBERS = 1 << 16  # decoded at once, all channels together: bounds the memory of files with many
# Decoded from one file at most: five minutes of eight channels at 48 kHz are fewer. A small file can claim far more.
MOST_NUMBERS = 1 << 27
LOWEST_RATE, HIGHEST_RATE = 1_000, 768_000


@dataclass(frozen=True, slots=True)
class Samples:
    """A sound.

    Attributes:
        values: Float32 `[samples]`, mono, finite; at least one.
        cut: True if there was more of it than was asked for.
    """

    values: FloatArray
    cut: bool


class _Source(io.BytesIO):
    """Where a damaged file sends the decoder before its beginning, the beginning is: an error could not leave C."""

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self.tell(), io.SEEK_END: self.getbuffer().nbytes}[whence]
        return super().seek(max(0, start + offset))


def check_decoder() -> None:
    """Raise `MissingExtraError` unless the libraries that decode and resample are there."""
    extras.require("soundfile", "audio", _PURPOSE)
    extras.require("soxr", "audio", _PURPOSE)


def decode(data: bytes, rate: int, most: int, item_index: int = 0) -> Samples:
    """Decode the beginning of a sound file; channels are averaged, other sampling rates converted.

    Args:
        data: A file in one of the formats `READABLE`.
        rate: Samples a second that are wanted.
        most: Samples (at that rate) that are kept. What follows is not decoded, however long the file claims to be.
        item_index: Of the item in the request, for messages.

    Raises:
        MediaError: It cannot be read, holds no sound, or numbers that are not finite.
        MissingExtraError: A library is not installed.
    """
    soundfile = extras.require("soundfile", "audio", _PURPOSE)
    _check_container(data, item_index)
    try:
        with soundfile.SoundFile(_Source(data)) as file:
            _check_rate(file.samplerate, item_index)
            values = _first_samples(resample(_mono_blocks(file, item_index), int(file.samplerate), rate), most + 1)
    except soundfile.SoundFileError as error:
        raise _broken(item_index, _reason(error)) from error
    if len(values) == 0:
        raise _broken(item_index, "it holds no samples")
    if not np.isfinite(values).all():
        raise _broken(item_index, "it holds samples that are not finite numbers")
    return Samples(values[:most], cut=len(values) > most)


def resample(blocks: Iterator[FloatArray], own_rate: int, rate: int) -> Iterator[FloatArray]:
    """Another sampling rate, band-limited (soxr's high quality); unchanged if it is the same."""
    if own_rate == rate:
        yield from blocks
        return
    soxr = extras.require("soxr", "audio", _PURPOSE)
    stream = soxr.ResampleStream(own_rate, rate, 1, dtype="float32", quality="HQ")
    for block in blocks:
        yield stream.resample_chunk(block)
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)


def _mono_blocks(file: Any, item_index: int) -> Iterator[FloatArray]:
    """The file from its beginning, channels averaged."""
    frames = max(1, _BLOCK_NUMBERS // int(file.channels))
    left = MOST_NUMBERS
    while len(block := file.read(frames, dtype="float32", always_2d=True)):
        left -= block.size
        if left < 0:
            raise _broken(
                item_index, f"it is more than {MOST_NUMBERS:,} samples, all {file.channels} channels together"
            )
        # a copy: the resampler wants contiguous numbers
        yield block[:, 0].copy() if block.shape[1] == 1 else block.mean(axis=1)


def _first_samples(blocks: Iterator[FloatArray], count: int) -> FloatArray:
    kept: list[FloatArray] = []
    total = 0
    for block in blocks:
        kept.append(block)
        total += len(block)
        if total >= count:
            break
    return np.concatenate(kept)[:count] if kept else np.zeros(0, np.float32)


def _check_container(data: bytes, item_index: int) -> None:
    if not data:
        raise _broken(item_index, "it is empty")
    name = container_of(data)
    if name not in READABLE:
        found = f"is {name}" if name else "is in a format that is not known"
        raise MediaError(
            f"Item {item_index} {found}; sounds are read from {', '.join(READABLE)}. Convert it.",
            param="input",
            item_index=item_index,
        )


def _check_rate(rate: int, item_index: int) -> None:
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        raise _broken(item_index, f"{rate} Hz is no sampling rate between {LOWEST_RATE} and {HIGHEST_RATE} Hz")


def _reason(error: Exception) -> str:
    """The library's own words, without the object it read from."""
    text = str(getattr(error, "error_string", "") or "").strip().rstrip(".")
    return text or "it ends too early or is damaged"


def _broken(item_index: int, reason: str) -> MediaError:
    return MediaError(
        f"Item {item_index} is no sound that can be used: {reason}. Send another file.",
        param="input",
        item_index=item_index,
    )
