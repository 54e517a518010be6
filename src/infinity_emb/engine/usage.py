"""Hot path. What a request cost, from the features of its inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.models.spec.image import PIXELS
from infinity_emb.types import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.features import Features


def usage_of(features: Sequence[Features]) -> Usage:
    """Tokens that the model sees, and the positions of what was cut."""
    return Usage(
        prompt_tokens=sum([len(item.token_ids) for item in features if not item.empty]),
        truncated=tuple([index for index, item in enumerate(features) if item.truncated]),
    )


def media_usage_of(features: Sequence[Features]) -> Usage:
    """The same of images or sounds."""
    usage = usage_of(features)
    pictures = [item.arrays[PIXELS] for item in features if item.arrays and PIXELS in item.arrays]
    pixels = sum(math.prod(one.shape[1:]) for one in pictures)
    return replace(usage, media_tokens=usage.prompt_tokens, image_pixels=pixels)
