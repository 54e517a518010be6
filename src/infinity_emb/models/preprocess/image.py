"""Turns the bytes of an image into the pixels a vision model reads, as transformers' image processors do."""

from __future__ import annotations

import io
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb import extras
from infinity_emb.errors import CheckpointError, MediaError
from infinity_emb.models.features import Features
from infinity_emb.models.spec.image import FILE, PIXELS, edges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from infinity_emb.models.preprocess.media import MediaLimits
    from infinity_emb.models.spec.media import MediaSpec

# Those that the web knows. Others of Pillow's are no pictures but programs or documents, or call other programs.
_FORMATS = ("PNG", "JPEG", "MPO", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000", "ICO")
# What Pillow is known to raise for a broken file, beside its own DecompressionBombError.
_BROKEN = (OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, OverflowError, struct.error, zlib.error)
_BICUBIC = 3
_CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
_CLIP_STD = (0.26862954, 0.26130258, 0.27577711)


class ImagePreprocessor:
    """Decodes, resizes, crops and normalises. Holds nothing that changes.

    Args:
        media: Of the checkpoint.
        limits: What an image may be.

    Raises:
        CheckpointError: The options lead to images of another size than the model reads.
        MissingExtraError: Pillow is not installed.
    """

    def __init__(self, media: MediaSpec, limits: MediaLimits) -> None:
        self._image: Any = extras.require("PIL.Image", "vision", "a model that reads images")
        self._operations: Any = extras.require("PIL.ImageOps", "vision", "a model that reads images")
        self._image.init()
        self._formats = [name for name in _FORMATS if name in self._image.OPEN]
        self._limits = limits
        self._shape = media.arrays[PIXELS]
        self._positions = media.positions
        options = media.settings
        self._size = edges(_given(options, "size", 224), "size", square=False) if _on(options, "do_resize") else None
        self._crop = None
        if _on(options, "do_center_crop"):
            self._crop = edges(_given(options, "crop_size", self._shape[1]), "crop_size", square=True)
        self._resample = int(_given(options, "resample", _BICUBIC))
        factor = float(_given(options, "rescale_factor", 1 / 255))
        self._factor = factor if _on(options, "do_rescale") else None
        self._mean, self._deviation = None, None
        if _on(options, "do_normalize"):
            self._mean = _column(_given(options, "image_mean", _CLIP_MEAN), "image_mean")
            self._deviation = _column(_given(options, "image_std", _CLIP_STD), "image_std")
        made = self._crop if self._crop is not None else self._size
        if made != self._shape[1:]:
            raise CheckpointError(
                f"{FILE}: its options give images of {made or 'any size'}, but the model reads {self._shape[1:]}. "
                "Correct size or crop_size.",
                param=f"{FILE}:crop_size",
            )

    def read(self, source: Any, index: int) -> Features:
        """Features of one image: the bytes of a file (turned upright as its EXIF data says), or a `PIL.Image`.

        Raises:
            MediaError: No image, a broken one, or too many pixels; `item_index` is set.
        """
        try:
            picture = self._open(source, index)
            pixels = self._pixels(picture)
        except (*_BROKEN, self._image.DecompressionBombError) as error:
            if isinstance(error, MediaError):
                raise
            raise _refuse(
                index,
                f"it cannot be decoded ({_reason(error)}). Send a whole file of one of the formats "
                f"{', '.join(self._formats)}",
            ) from error
        return self._features(pixels)

    def sample(self) -> Features:
        """A black image."""
        return self._features(np.zeros(self._shape, np.float32))

    def _features(self, pixels: NDArray[np.float32]) -> Features:
        return Features(np.zeros(self._positions, np.int64), arrays={PIXELS: pixels})

    def _open(self, source: Any, index: int) -> Any:
        """The whole picture in red, green and blue."""
        if isinstance(source, self._image.Image):
            self._check_size(source, index)
            return _in_rgb(source)
        if not isinstance(source, (bytes, bytearray, memoryview)):
            raise _refuse(index, f"expected a URL, the bytes of a file or a PIL.Image, found {type(source).__name__}")
        with self._image.open(io.BytesIO(source), formats=self._formats) as opened:
            self._check_size(opened, index)
            opened.load()
            return _in_rgb(self._operations.exif_transpose(opened))

    def _check_size(self, picture: Any, index: int) -> None:
        width, height = picture.size
        if width * height > self._limits.pixels:
            raise _refuse(
                index,
                f"it has {width} x {height} pixels; at most {self._limits.pixels} are allowed (--max-image-pixels). "
                "Send a smaller one",
            )
        if not width or not height:
            raise _refuse(index, "it has no pixels")

    def _pixels(self, picture: Any) -> NDArray[np.float32]:
        if self._size is not None:
            height, width = _resized(picture.size, self._size)
            picture = picture.resize((width, height), resample=self._resample)
        numbers = np.asarray(picture)
        if self._crop is not None:
            numbers = _center(numbers, self._shape[1:])
        values: NDArray[np.float32] = numbers.astype(np.float32)
        if self._factor is not None:
            values = (numbers.astype(np.float64) * self._factor).astype(np.float32)
        if self._mean is not None and self._deviation is not None:
            values = (values - self._mean) / self._deviation
        return np.ascontiguousarray(values.transpose(2, 0, 1))


def _in_rgb(picture: Any) -> Any:
    if picture.mode == "P" and "transparency" in picture.info:
        picture = picture.convert("RGBA")  # the same colours, without Pillow's warning
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def _resized(size: tuple[int, int], wanted: tuple[int, int] | int) -> tuple[int, int]:
    """Height and width after resizing; the longer edge is rounded down, as transformers does."""
    if not isinstance(wanted, int):
        return wanted
    width, height = size
    longer = int(wanted * max(size) / min(size))
    return (longer, wanted) if width <= height else (wanted, longer)


def _center(numbers: NDArray[np.uint8], wanted: Sequence[int]) -> NDArray[np.uint8]:
    """The middle of `[height, width, 3]`; black where the image is smaller."""
    height, width = numbers.shape[:2]
    short = [max(0, wanted[0] - height), max(0, wanted[1] - width)]
    if any(short):
        before = [math.ceil(edge / 2) for edge in short]
        numbers = np.pad(numbers, [*((a, s - a) for a, s in zip(before, short, strict=True)), (0, 0)])
        height, width = numbers.shape[:2]
    top, left = (height - wanted[0]) // 2, (width - wanted[1]) // 2
    return numbers[top : top + wanted[0], left : left + wanted[1]]


def _on(options: dict[str, Any], name: str) -> bool:
    return bool(_given(options, name, True))


def _given(options: dict[str, Any], name: str, default: Any) -> Any:
    value = options.get(name)
    return default if value is None else value


def _column(value: Any, field: str) -> NDArray[np.float32]:
    numbers = np.asarray(value if isinstance(value, (list, tuple)) else [value] * 3, np.float32)
    if numbers.shape != (3,):
        raise CheckpointError(f"{FILE}: {field}: {value!r} is not one number a channel.", param=f"{FILE}:{field}")
    return numbers


def _refuse(index: int, reason: str) -> MediaError:
    return MediaError(f"Item {index} is no image that can be read: {reason}.", param="input", item_index=index)


def _reason(error: BaseException) -> str:
    """The library's words, without the address of the object it read from."""
    text = str(error).partition(" <_io.")[0].strip()
    return text or type(error).__name__
