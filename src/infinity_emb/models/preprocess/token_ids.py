"""Hot path. Reads inputs that are token ids already: checks them and cuts what is too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.errors import InvalidInputError
from infinity_emb.models.features import Features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.preprocess.template import Template, Window


def check_token_ids(ids: Sequence[int], vocabulary: int, where: str) -> None:
    """Raise unless every id is a whole number in 0..vocabulary-1.

    Args:
        ids: As the caller sent them.
        vocabulary: Rows of the model's embedding table.
        where: The item in words, such as `input[3]`.

    Raises:
        InvalidInputError: Naming the item, the first wrong id and the allowed range.
    """
    wrong = next((number for number in ids if type(number) is not int or not 0 <= number < vocabulary), None)
    if wrong is not None:
        raise InvalidInputError(
            f"{where}: {wrong!r} is no token id of this model; allowed are whole numbers from 0 to {vocabulary - 1}.",
            param=where,
        )


def read_token_ids(ids: Any, template: Template, vocabulary: int, window: Window, where: str) -> Features:
    """Features of ready-made ids, fed as they are; a cut spares the special tokens at the ends, if they are there.

    Raises:
        InvalidInputError: No list, no ids, or one outside the vocabulary.
    """
    if not isinstance(ids, (list, tuple)):
        found = type(ids).__name__
        raise InvalidInputError(f"{where}: expected a text or a list of token ids, found {found}.", param=where)
    if not ids:
        raise InvalidInputError(f"{where}: the list of token ids is empty; give at least one.", param=where)
    check_token_ids(ids, vocabulary, where)
    if len(ids) <= window.limit:
        return Features(np.array(ids, dtype=np.int64))
    given = list(ids)
    head, tail = len(template.head), len(template.tail)
    if tuple(given[:head]) == template.head and tuple(given[len(given) - tail :]) == template.tail:
        content = given[head : len(given) - tail]
        return Features(template.single(content, window).token_ids, truncated=True)
    kept = given[len(given) - window.limit :] if window.left else given[: window.limit]
    return Features(np.array(kept, dtype=np.int64), truncated=True)
