"""Cuts the token ids of a text that is too long into pieces that each fit, for an average over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.features import Features
    from infinity_emb.models.preprocess.template import Template, Window


def cut_into_pieces(
    ids: Sequence[int], prompt: Sequence[int], template: Template, window: Window, where: str
) -> list[Features]:
    """Features of consecutive pieces, each behind the prompt and between the special tokens; the last may be short.

    Raises:
        InvalidInputError: The prompt leaves no room.
    """
    room = window.limit - template.specials - len(prompt)
    if room < 1:
        raise InvalidInputError(
            f"{where}: the prompt of {len(prompt)} tokens leaves no room for text within {window.limit}.",
            param="prompt",
        )
    made = []
    for start in range(0, len(ids), room):
        features = template.single([*prompt, *ids[start : start + room]], window)
        made.append(features)
    return made
