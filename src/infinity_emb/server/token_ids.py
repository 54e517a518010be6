"""Token ids of OpenAI's `cl100k_base` back to text, as clients that count tokens themselves send them.

Only decoding is needed, so the table of byte sequences is enough and no tokenizer library is. The table is the public
one of OpenAI's tiktoken (MIT licence) in a shorter form: gzip of one byte a token, its length, and then all tokens.
"""

from __future__ import annotations

import functools
import gzip
from importlib import resources
from itertools import accumulate
from typing import TYPE_CHECKING

from infinity_emb.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Iterable

_TOKENS = 100_256
_SPECIAL = {
    100257: b"<|endoftext|>",
    100258: b"<|fim_prefix|>",
    100259: b"<|fim_middle|>",
    100260: b"<|fim_suffix|>",
    100276: b"<|endofprompt|>",
}


def decode_cl100k(lists: Iterable[list[int]]) -> list[str]:
    """Texts of lists of ids.

    Raises:
        InvalidInputError: An id is outside the vocabulary.
    """
    table = load_table()
    return [_decode(table, ids) for ids in lists]


def _decode(table: dict[int, bytes], ids: list[int]) -> str:
    try:
        raw = b"".join([table[number] for number in ids])
    except KeyError as error:
        raise InvalidInputError(
            f"Token id {str(error.args[0])[:30]} is not in the vocabulary cl100k_base ({len(table):,} ids, up to "
            f"{max(table):,}). If the ids are of the served model's own vocabulary, start the server with "
            "--token-ids model.",
            param="input",
        ) from error
    return raw.decode("utf-8", errors="replace")


@functools.cache
def load_table() -> dict[int, bytes]:
    """Byte sequence of each id, read once, when the first ids arrive."""
    raw = gzip.decompress(resources.files("infinity_emb.server").joinpath("data/cl100k_base.gz").read_bytes())
    ends = list(accumulate(raw[:_TOKENS], initial=_TOKENS))
    return {number: raw[ends[number] : ends[number + 1]] for number in range(_TOKENS)} | _SPECIAL
