"""Shows tokens to people: `/tokenize` and `/decode`."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from infinity_emb.models.preprocess.token_ids import check_token_ids
from infinity_emb.types import TokenInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Encoding

    from infinity_emb.models.preprocess.encoder import Encoder
    from infinity_emb.models.preprocess.words import WordEncoding


def tokenize(encoder: Encoder, texts: Sequence[str], *, add_special_tokens: bool) -> list[list[TokenInfo]]:
    """Tokens of each text with the bytes they stand for, not truncated.

    Raises:
        InvalidInputError: As `Encoder.encode`.
    """
    encoder.encode(texts, "input")  # for its checks: the calls below would fail without naming the item
    encodings: Sequence[Encoding | WordEncoding] = encoder.tokenizer.encode_batch(
        texts, add_special_tokens=add_special_tokens
    )
    return [_tokens(text, encoding) for text, encoding in zip(texts, encodings, strict=True)]


def decode(encoder: Encoder, ids: Sequence[Sequence[int]], *, skip_special_tokens: bool) -> list[str]:
    """Text of each list of ids.

    Raises:
        InvalidInputError: An id outside the vocabulary.
    """
    for index, numbers in enumerate(ids):
        check_token_ids(numbers, encoder.vocabulary, f"ids[{index}]")
    texts: list[str] = encoder.tokenizer.decode_batch(
        [list(numbers) for numbers in ids], skip_special_tokens=skip_special_tokens
    )
    return texts


def _tokens(text: str, encoding: Encoding | WordEncoding) -> list[TokenInfo]:
    places = None if text.isascii() else list(accumulate((len(char.encode()) for char in text), initial=0))
    rows = zip(encoding.ids, encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True)
    tokens = []
    for number, name, (start, stop), special in rows:
        if special:
            tokens.append(TokenInfo(number, name, special=True, start=None, stop=None))
            continue
        first, last = (start, stop) if places is None else (places[start], places[stop])
        tokens.append(TokenInfo(number, text[start:stop], special=False, start=first, stop=last))
    return tokens
