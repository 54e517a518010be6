"""Pixels of a picture: sizes, crops, modes and limits. Equality with the reference library is tested in tests/parity."""

from __future__ import annotations

import contextlib
import io
import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from infinity_emb.errors import CheckpointError, MediaError, MissingExtraError
from infinity_emb.models.preprocess.image import ImagePreprocessor
from infinity_emb.models.preprocess.media import MediaLimits
from infinity_emb.models.spec.media import MediaSpec
from infinity_emb.types import Modality
from pictures import encoded, picture

SIZE = 16
PLAIN = {"do_normalize": False, "do_rescale": False, "size": {"shortest_edge": SIZE}, "crop_size": SIZE}


def reader(pixels: int = 1 << 20, **settings: object) -> ImagePreprocessor:
    spec = MediaSpec(Modality.IMAGE, 5, {"pixel_values": (3, SIZE, SIZE)}, PLAIN | settings)
    return ImagePreprocessor(spec, MediaLimits(pixels=pixels))


def pixels(read: ImagePreprocessor, source: object) -> np.ndarray:
    features = read.read(source, 0)
    assert features.cost == 5
    return features.arrays["pixel_values"].transpose(1, 2, 0)


def png_head(width: int, height: int) -> bytes:
    """A PNG that promises so many pixels and holds none."""
    body = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + body + struct.pack(">I", zlib.crc32(body))
    return head + struct.pack(">I", 100) + b"IDAT"


@pytest.mark.parametrize("size", [(40, 16), (16, 40), (16, 16), (37, 23), (400, 17)])
def test_the_middle_of_the_picture_is_kept(size):
    image = picture(*size)
    short = min(size)
    wanted = tuple(SIZE if edge == short else int(SIZE * edge / short) for edge in size)
    resized = np.asarray(image.resize(wanted, Image.Resampling.BICUBIC)).astype(np.float32)
    top, left = (resized.shape[0] - SIZE) // 2, (resized.shape[1] - SIZE) // 2
    np.testing.assert_array_equal(pixels(reader(), encoded(image)), resized[top : top + SIZE, left : left + SIZE])


def test_a_picture_smaller_than_the_crop_lies_on_black():
    image = picture(8, 8)
    made = pixels(reader(do_resize=False), encoded(image))
    np.testing.assert_array_equal(made[4:12, 4:12], np.asarray(image))
    assert made.sum() == np.asarray(image).astype(np.float32).sum()


def test_both_edges_may_be_fixed():
    image = picture(50, 20)
    made = pixels(reader(size={"height": SIZE, "width": SIZE}, do_center_crop=False, resample=2), encoded(image))
    np.testing.assert_array_equal(made, np.asarray(image.resize((SIZE, SIZE), Image.Resampling.BILINEAR)))


def test_numbers_are_rescaled_and_normalised():
    made = pixels(
        reader(do_rescale=True, do_normalize=True, image_mean=[0.5] * 3, image_std=0.25), encoded(picture(16, 16))
    )
    plain = pixels(reader(), encoded(picture(16, 16)))
    np.testing.assert_allclose(made, (plain / 255 - 0.5) / 0.25, atol=1e-6)


def test_a_photograph_is_turned_upright_but_an_open_picture_is_taken_as_it_is():
    image = picture(32, 20)
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = encoded(image, "PNG", exif=exif)
    upright = image.transpose(Image.Transpose.ROTATE_270)
    np.testing.assert_array_equal(pixels(reader(), lying), pixels(reader(), encoded(upright)))
    np.testing.assert_array_equal(pixels(reader(), Image.open(io.BytesIO(lying))), pixels(reader(), image))


@pytest.mark.parametrize("form", ["PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM"])
def test_the_formats_of_the_web_are_read(form):
    image = Image.new("RGB", (20, 20), (200, 30, 60))
    np.testing.assert_allclose(pixels(reader(), encoded(image, form)), pixels(reader(), image), atol=3)


@pytest.mark.parametrize("source", [png_head(4000, 4000), encoded(Image.new("1", (1200, 1000)))])
def test_too_many_pixels_are_refused_before_they_are_decoded(source):
    with pytest.raises(MediaError, match=r"Item 7 .*pixels.*--max-image-pixels") as caught:
        reader().read(source, 7)
    assert caught.value.item_index == 7


@pytest.mark.parametrize("source", [png_head(60_000, 60_000), png_head(8, 8), b"", b"GIF89a", "a text", None, 3])
def test_what_is_no_whole_picture_is_refused_by_its_index(source):
    with pytest.raises(MediaError, match="Item 2 is no image") as caught:
        reader(pixels=1 << 40).read(source, 2)
    assert (caught.value.item_index, caught.value.param) == (2, "input")


@pytest.mark.filterwarnings("ignore:.*:UserWarning:PIL")  # Pillow says what it thinks of a file
def test_no_broken_file_does_anything_but_be_refused():
    chance = np.random.default_rng(0)
    read = reader()
    for form in ("PNG", "JPEG", "GIF", "WEBP", "TIFF", "BMP"):
        whole = bytearray(encoded(picture(24, 18), form))
        for _ in range(40):
            broken = bytearray(whole)
            for place in chance.integers(0, len(broken), 6):
                broken[place] = chance.integers(0, 256)
            del broken[int(chance.integers(1, len(broken))) :]
            with contextlib.suppress(MediaError):
                assert np.isfinite(pixels(read, bytes(broken))).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"crop_size": 8}, "the model reads"),
        ({"do_center_crop": False}, "the model reads"),
        ({"size": {"longest_edge": 9}}, "size"),
        ({"size": {"shortest_edge": 9, "longest_edge": 30}}, "size"),
        ({"size": "large"}, "size"),
        ({"do_normalize": True, "image_mean": [0.5]}, "image_mean"),
    ],
)
def test_options_that_do_not_fit_the_model_are_refused_by_name(settings, words):
    with pytest.raises(CheckpointError, match=words) as caught:
        reader(**settings)
    assert "preprocessor_config.json" in caught.value.param


def test_without_pillow_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingExtraError, match=r'pip install "infinity_emb\[vision\]"'):
        reader()
