"""Hot path. Tokenizes only the part of a text that can survive truncation, with the tokens of the whole text.

A piece from the kept end is cut off where that is proven to change nothing (`boundary`) and tokenized; if it yields too
few tokens, a larger one is taken. A text of any length thus costs about as much as what is kept of it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from infinity_emb.models.preprocess.boundary import learn_boundaries
from infinity_emb.models.preprocess.endless import learn_shortening

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infinity_emb.models.preprocess.boundary import Boundaries
    from infinity_emb.models.preprocess.encoder import Encoder

# Ordinary text has 3 to 5 characters a token; a first piece that is too short costs a second one.
CHARACTERS_PER_TOKEN = 6
SLACK_CHARACTERS = 64
GROWTH = 4
# A boundary is looked for this far beyond the wanted length, in characters.
SEARCH_CHARACTERS = 2_000


class Kept(NamedTuple):
    """Token ids of the kept end of a text.

    Attributes:
        ids: At least as many as asked for, or all there are.
        whole: Whether they are all.
    """

    ids: list[int]
    whole: bool


class SurvivingEncoder:
    """Encodes texts as far as needed.

    Args:
        encoder: Encodes pieces.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    @functools.cached_property
    def _boundaries(self) -> Boundaries:
        """Learned from the first long text: patterns of that size take a while to compile."""
        return learn_boundaries(self._encoder.tokenizer)

    @functools.cached_property
    def _shorten(self) -> Callable[[str], str] | None:
        return learn_shortening(self._encoder.tokenizer)

    def encode(
        self, texts: Sequence[Any], needed: int, name: str, *, left: bool, positions: Sequence[int] | None = None
    ) -> list[Kept]:
        """The first `needed` tokens of each text (the last ones if `left` is cut off), or somewhat more.

        What is cut off is not looked at.

        Raises:
            InvalidInputError: As `Encoder.encode`.
        """
        first = needed * CHARACTERS_PER_TOKEN + SLACK_CHARACTERS
        sizes = {index: first for index, text in enumerate(texts) if isinstance(text, str) and len(text) > 2 * first}
        sources, pieces = list(texts), list(texts)
        whole = [index not in sizes for index in range(len(texts))]
        found: list[list[int]] = [[]] * len(texts)
        waiting = list(range(len(texts)))
        while waiting:
            for index in waiting:
                if index in sizes:
                    sources[index], pieces[index] = self._piece(sources[index], sizes[index], left=left)
                    whole[index] = len(pieces[index]) == len(sources[index])
            places = [index if positions is None else positions[index] for index in waiting]
            encoded = self._encoder.encode([pieces[index] for index in waiting], name, places)
            for index, ids in zip(waiting, encoded, strict=True):
                found[index] = ids
            waiting = [index for index in waiting if not whole[index] and len(found[index]) < needed]
            for index in waiting:
                sizes[index] *= GROWTH
        return [Kept(ids, whole=all_of_it) for ids, all_of_it in zip(found, whole, strict=True)]

    def _piece(self, text: str, size: int, *, left: bool, shortened: bool = False) -> tuple[str, str]:
        """The text, its endless words shortened where one is in the way, and about `size` characters of its kept end.

        The piece is all of it where no boundary is near or little would be saved.
        """
        boundary = self._boundaries.keep_end if left else self._boundaries.keep_start
        if boundary is None or 2 * size >= len(text):
            return text, text
        reach = max(size, SEARCH_CHARACTERS)
        if left:
            place = boundary.search(text, max(1, len(text) - size - reach), len(text) - size)
        else:
            place = boundary.search(text, size, min(len(text), size + reach))
        if place is None and self._shorten is not None and not shortened:
            return self._piece(self._shorten(text), size, left=left, shortened=True)
        if place is None:
            return self._piece(text, size * GROWTH, left=left, shortened=shortened)
        return text, text[place.start() :] if left else text[: place.start()]
