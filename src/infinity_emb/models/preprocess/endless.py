"""Shortens words that are too long for the tokenizer to look into, with the tokens of the whole word.

WordPiece turns a word of more than so many characters into one unknown token, whatever the characters are. The middle
of a run of ASCII letters and digits can therefore be left out, as long as more than so many of them stay: no normalizer
that is let through changes how many they are, no pre-tokenizer that is let through splits between them, and no added
token consists of them alone, while the ends, which an added token could share with what stands beside them, stay.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from infinity_emb.models.preprocess.boundary import parts_of, spellings
from infinity_emb.models.preprocess.words import WordTokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tokenizers import Tokenizer

_NORMALIZERS = frozenset({"BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Strip", "StripAccents"})
_SPLITTERS = frozenset({"BertPreTokenizer", "Whitespace", "WhitespaceSplit"})
_CHARACTER = "[0-9A-Za-z]"
_END_CHARACTERS = 64  # that stay at the end of a word; longer added tokens are not reckoned with


def learn_shortening(tokenizer: Tokenizer | WordTokenizer) -> Callable[[str], str] | None:
    """What shortens endless words without changing a token; None unless that can be proven."""
    if isinstance(tokenizer, WordTokenizer):
        return None
    limit = getattr(tokenizer.model, "max_input_chars_per_word", None)
    steps = parts_of(tokenizer.normalizer, "normalizers"), parts_of(tokenizer.pre_tokenizer, "pretokenizers")
    known = all(
        step["type"] in allowed
        for part, allowed in zip(steps, (_NORMALIZERS, _SPLITTERS), strict=True)
        for step in part
    )
    if type(tokenizer.model).__name__ != "WordPiece" or limit is None or not known or not steps[1]:
        return None
    for token in tokenizer.get_added_tokens_decoder().values():
        for written in spellings(tokenizer, token):
            if re.fullmatch(f"{_CHARACTER}*", written) or len(written) > _END_CHARACTERS:
                return None
    kept = f"{_CHARACTER}{{{limit + 1}}}"
    word = re.compile(f"(?<!{_CHARACTER})({kept}){_CHARACTER}*({_CHARACTER}{{{_END_CHARACTERS}}})")
    return lambda text: word.sub(r"\1\2", text)
