"""Checks of a request's list of inputs that need nothing but the list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.errors import InputTooLargeError, InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Below this, tokenizing in the caller's thread is cheaper than handing it over.
INLINE_CHARACTERS = 4_000
INLINE_ITEMS = 32


def check_list(inputs: Sequence[Any], limit: int) -> None:
    """Raise unless there are between one and `limit` inputs, in a list.

    Raises:
        InvalidInputError: None at all, or a single text, which would be read letter by letter.
        InputTooLargeError: Too many.
    """
    if isinstance(inputs, (str, bytes)):
        raise InvalidInputError("The inputs must be a list of texts, not one text; send [text].", param="input")
    if not inputs:
        raise InvalidInputError("The list of inputs is empty; send at least one.", param="input")
    if len(inputs) > limit:
        raise InputTooLargeError(
            f"{len(inputs)} inputs in one request; at most {limit} are allowed. Send several smaller requests, or "
            "raise --max-client-batch-size.",
            param="input",
        )


def is_small(inputs: Sequence[Any]) -> bool:
    """Whether texts are tokenized faster here than in another thread."""
    if len(inputs) > INLINE_ITEMS:
        return False
    size = len if set(map(type, inputs)) == {str} else _size
    return sum(map(size, inputs)) <= INLINE_CHARACTERS


def _size(item: Any) -> int:
    """Characters or tokens; wrong types are told by the preprocessor."""
    if isinstance(item, tuple):
        return sum(_size(part) for part in item)
    return len(item) if isinstance(item, (str, list)) else 0
