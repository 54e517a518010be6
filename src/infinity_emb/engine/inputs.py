"""Hot path. What the engine looks at in the inputs of a request before they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.types import TextInput

# Below this, tokenizing in the caller's thread is cheaper than handing it over.
INLINE_CHARACTERS = 4_000
INLINE_ITEMS = 16


def check_list(inputs: object) -> None:
    """A single text given for the list would be read letter by letter."""
    if isinstance(inputs, (str, bytes)):
        raise InvalidInputError("The inputs must be a list of texts, not one text; send [text].", param="input")


def is_small(inputs: Sequence[Any]) -> bool:
    """Whether they are read sooner in the caller's thread than in another."""
    return len(inputs) <= INLINE_ITEMS and sum(map(_size, inputs)) <= INLINE_CHARACTERS


def _size(item: TextInput | tuple[str, str]) -> int:
    """Characters or tokens, as far as the choice of the thread needs them; wrong types are told by the preprocessor."""
    if isinstance(item, tuple):
        return sum(_size(part) for part in item)
    return len(item) if isinstance(item, (str, list)) else 0
