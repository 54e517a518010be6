"""Turns the bytes of a sound file into the spectrograms an audio model reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.errors import MediaError
from infinity_emb.models.features import Features
from infinity_emb.models.sound.decode import check_decoder, decode
from infinity_emb.models.sound.features import SpectrogramReader
from infinity_emb.models.spec.sound import SPECTROGRAMS, read_options

if TYPE_CHECKING:
    from infinity_emb.models.preprocess.media import MediaLimits
    from infinity_emb.models.spec.media import MediaSpec
    from infinity_emb.types import FloatArray


class SoundPreprocessor:
    """Decodes, converts and transforms. Holds nothing that changes.

    Args:
        media: Of the checkpoint.
        limits: Of images; sounds are bounded by what the model reads.

    Raises:
        CheckpointError: The options are not supported.
        MissingExtraError: A library is not installed.
    """

    def __init__(self, media: MediaSpec, limits: MediaLimits) -> None:
        del limits
        check_decoder()
        self._options = read_options(media.settings)
        self._spectrograms = SpectrogramReader(self._options)
        self._shape = media.arrays[SPECTROGRAMS]
        self._positions = media.positions

    def read(self, source: Any, index: int) -> Features:
        """Features of one sound, from the bytes of a file.

        Raises:
            MediaError: No sound, or a broken one; `item_index` is set.
        """
        if not isinstance(source, (bytes, bytearray, memoryview)):
            raise MediaError(
                f"Item {index} is no sound: expected a URL or the bytes of a file, found {type(source).__name__}.",
                param="input",
                item_index=index,
            )
        samples = decode(bytes(source), self._options.rate, self._options.most_samples, index)
        spectrograms = self._spectrograms(samples.values)
        if not np.isfinite(spectrograms).all():
            raise MediaError(
                f"Item {index} is too loud: its power is beyond what float32 holds. Scale its samples to -1..1.",
                param="input",
                item_index=index,
            )
        return self._features(spectrograms, truncated=samples.cut)

    def sample(self) -> Features:
        """Silence."""
        return self._features(np.full(self._shape, -100, np.float32), truncated=False)

    def _features(self, spectrograms: FloatArray, *, truncated: bool) -> Features:
        tokens = np.zeros(self._positions, np.int64)
        return Features(tokens, truncated=truncated, arrays={SPECTROGRAMS: spectrograms})
