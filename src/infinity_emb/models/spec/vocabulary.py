"""Looks up single tokens in a repository's tokenizer.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.files import join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

    from infinity_emb.models.spec.files import Repository

FILE = "tokenizer.json"


def open_tokenizer(repository: Repository, folder: str) -> Tokenizer:
    """The tokenizer of a folder, as its file says.

    Raises:
        CheckpointError: The file is missing, or cannot be read.
    """
    from tokenizers import Tokenizer  # noqa: PLC0415 - heavy; most checkpoints need no look-up

    name = join(folder, FILE)
    repository.config(name, required=True)
    try:
        return Tokenizer.from_file(str(repository.path(folder, FILE)))
    except Exception as error:  # the library raises no narrower one
        raise CheckpointError(f"{name}: the tokenizers library cannot read it ({error}).", param=name) from error


def find_token_ids(repository: Repository, folder: str, tokens: Sequence[str]) -> list[int | None]:
    """Number of each token, None for what is not one token of the vocabulary.

    Raises:
        CheckpointError: The file is missing or holds no vocabulary.
    """
    tokenizer = open_tokenizer(repository, folder)
    return [tokenizer.token_to_id(token) for token in tokens]


def read_token_ids(repository: Repository, folder: str, tokens: Sequence[str]) -> list[int]:
    """As `find_token_ids`, where all must be there.

    Raises:
        CheckpointError: One is not.
    """
    found = find_token_ids(repository, folder, tokens)
    ids = [number for number in found if number is not None]
    if len(ids) < len(tokens):
        lacking = [token for token, number in zip(tokens, found, strict=True) if number is None]
        name = join(folder, FILE)
        raise CheckpointError(
            f"{name}: the token {lacking[0]!r} is missing from the vocabulary. Fetch the file again.", param=name
        )
    return ids
