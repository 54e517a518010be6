"""Pictures for tests, as files and as the addresses that requests hold."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image


def picture(width: int, height: int, seed: int = 0) -> Image.Image:
    """Soft random colours, so that resizing and cropping change it visibly but not wildly."""
    chance = np.random.default_rng(seed)
    small = Image.fromarray(chance.integers(0, 256, (4, 6, 3), dtype=np.uint8))
    return small.resize((width, height), Image.Resampling.BICUBIC)


def encoded(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    """The bytes of a file."""
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def data_uri(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
