"""The contract of a preprocessor of images or sounds, and which one reads what."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.media import MediaSpec

_PACKAGE = "infinity_emb.models.preprocess"
# modality → its preprocessor, loaded when a model needs it
_PREPROCESSORS = {
    Modality.IMAGE: f"{_PACKAGE}.image:ImagePreprocessor",
    Modality.AUDIO: f"{_PACKAGE}.sound:SoundPreprocessor",
}


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """What a decoded item may be.

    Attributes:
        pixels: Most pixels of an image.
    """

    pixels: int


class MediaPreprocessor(Protocol):
    """Holds nothing that changes, so any number of threads may use it at once."""

    def read(self, source: Any, index: int) -> Features:
        """Features of one image or sound, fully decoded.

        Args:
            source: The bytes of a file, or an object of the library that decodes them.
            index: Of the item in the request, for messages.

        Raises:
            MediaError: It cannot be decoded, or is too large; `item_index` is set.
        """

    def sample(self) -> Features:
        """Something that a model can be warmed up with."""


def make_media_preprocessor(media: MediaSpec, limits: MediaLimits) -> MediaPreprocessor:
    """The preprocessor of one modality of a checkpoint.

    Raises:
        CheckpointError: Its options are not supported.
        MissingExtraError: The library that decodes is not installed.
    """
    module, _, name = _PREPROCESSORS[media.modality].partition(":")
    made: MediaPreprocessor = getattr(importlib.import_module(module), name)(media, limits)
    return made
