"""Hot path. Puts special tokens around token ids and cuts what is too long, exactly as the tokenizer itself would.

The tokenizer is never asked to truncate: its limit is shared state, which is not safe while other threads encode, and
a query that is encoded once can be joined with every document.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from infinity_emb.errors import CheckpointError
from infinity_emb.models.features import Features

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_PROBES = ("a", "the", "0", "x y z")  # at least one of them gives a token in any vocabulary worth the name


class Window(NamedTuple):
    """How much of an input is kept.

    Attributes:
        limit: Tokens, special tokens included.
        left: Cut at the left end instead of the right one.
    """

    limit: int
    left: bool


@dataclass(frozen=True, slots=True)
class Template:
    """Special tokens before, between and after one or two texts.

    Attributes:
        head: Before the first text.
        middle: Between two texts; empty for one.
        tail: At the end.
        types: Type ids of head, first text, middle, second text, tail; None if all are 0.
    """

    head: tuple[int, ...]
    middle: tuple[int, ...]
    tail: tuple[int, ...]
    types: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]] | None

    @property
    def specials(self) -> int:
        """Special tokens it adds."""
        return len(self.head) + len(self.middle) + len(self.tail)

    def single(self, ids: list[int], window: Window) -> Features:
        """Features of one text."""
        room = window.limit - self.specials
        truncated = len(ids) > room
        if truncated:
            ids = _cut(ids, room, window)
        return Features(self._join(ids, []), self._types(len(ids), 0), truncated=truncated)

    def pair(self, first: list[int], second: list[int], window: Window) -> Features:
        """Features of a pair."""
        room = window.limit - self.specials
        truncated = len(first) + len(second) > room
        if truncated:
            kept_first, kept_second = share(len(first), len(second), room)
            first, second = _cut(first, kept_first, window), _cut(second, kept_second, window)
        return Features(self._join(first, second), self._types(len(first), len(second)), truncated=truncated)

    def _join(self, first: list[int], second: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([*self.head, *first, *self.middle, *second, *self.tail], dtype=np.int64)

    def _types(self, first: int, second: int) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        if self.types is None:
            return None
        head, first_type, middle, second_type, tail = self.types
        return np.array(
            [*head, *[first_type] * first, *middle, *[second_type] * second, *tail],
            dtype=np.int64,
        )


BARE = Template((), (), (), None)  # nothing around a text


def share(first: int, second: int, room: int) -> tuple[int, int]:
    """Tokens that two texts keep of `room`, when they do not fit: the longer one gives way first.

    The rule of the tokenizers library (`longest_first`): the shorter text stays whole as long as the longer one can
    absorb the cut; else both get half, and an odd token goes to the longer one.
    """
    shorter, longer = min(first, second), max(first, second)
    longer = shorter if shorter > room else max(shorter, room - shorter)
    if shorter + longer > room:
        shorter = room // 2
        longer = shorter + room % 2
    return (longer, shorter) if first > second else (shorter, longer)


def learn_single(tokenizer: Tokenizer, *, typed: bool) -> Template:
    """The template that the tokenizer uses for one text; `typed` if the model reads type ids."""
    probe = _probe(tokenizer)
    return _learn(tokenizer.encode(probe), typed=typed)


def learn_pair(tokenizer: Tokenizer, *, typed: bool) -> Template:
    """The template that the tokenizer uses for a pair."""
    probe = _probe(tokenizer)
    return _learn(tokenizer.encode(probe, probe), typed=typed)


def _probe(tokenizer: Tokenizer) -> str:
    for text in _PROBES:
        if tokenizer.encode(text, add_special_tokens=False).ids:
            return text
    raise CheckpointError(
        "tokenizer.json: it makes no tokens of plain text. Download it again.", param="tokenizer.json"
    )


def _learn(encoding: Encoding, *, typed: bool) -> Template:
    """Read off which positions are special (`None` in the sequence ids) and where the texts lie."""
    origin: list[int | None] = encoding.sequence_ids
    first = [position for position, source in enumerate(origin) if source == 0]
    second = [position for position, source in enumerate(origin) if source == 1]
    end = second[-1] if second else first[-1]
    middle = slice(first[-1] + 1, second[0]) if second else slice(0, 0)
    regular = first == list(range(first[0], first[-1] + 1)) and second == list(range(end - len(second) + 1, end + 1))
    if not regular or (second and second[0] < first[-1]):
        raise CheckpointError(
            "tokenizer.json: post_processor: its template is not supported. Supported: special tokens around one text, "
            "or around and between two.",
            param="tokenizer.json:post_processor",
        )
    kinds = encoding.type_ids
    types = (
        tuple(kinds[: first[0]]),
        kinds[first[0]],
        tuple(kinds[middle]),
        kinds[second[0]] if second else 0,
        tuple(kinds[end + 1 :]),
    )
    ids = encoding.ids
    return Template(
        tuple(ids[: first[0]]), tuple(ids[middle]), tuple(ids[end + 1 :]), types if typed and any(kinds) else None
    )


def _cut(ids: list[int], kept: int, window: Window) -> list[int]:
    return ids[len(ids) - kept :] if window.left else ids[:kept]
