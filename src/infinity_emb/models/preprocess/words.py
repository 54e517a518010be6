"""Hot path. Splits texts into the words of a vocabulary; offers what is used of the tokenizers library's class.

The rule is that of sentence-transformers' WhitespaceTokenizer: a piece between white space is looked up as it is, then
without punctuation at its ends, then in lower case. A stop word in any of these forms, and what is never found, is left
out.
"""

from __future__ import annotations

import json
import re
import string
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infinity_emb.models.spec.words import WordSplit

_PIECE = re.compile(r"\S+")


class WordEncoding:
    """The words of one text.

    Attributes:
        ids: Their numbers.
        offsets: Where their pieces stand in the text.
    """

    __slots__ = ("ids", "offsets", "tokens")

    def __init__(self, ids: list[int], offsets: list[tuple[int, int]], tokens: list[str]) -> None:
        self.ids, self.offsets, self.tokens = ids, offsets, tokens

    @property
    def special_tokens_mask(self) -> list[int]:
        """No word is special."""
        return [0] * len(self.ids)


class WordTokenizer:
    """A vocabulary that never changes, so that threads may share it.

    Args:
        split: Where it is written.

    Raises:
        CheckpointError: The file cannot be read.
    """

    def __init__(self, split: WordSplit) -> None:
        try:
            stated = json.loads(split.file.read_text("utf-8"))
            words, stop_words = stated["vocab"], stated.get("stop_words") or []
            self._names: list[str] = list(dict.fromkeys(words)) if split.unique else list(words)
            self._stop_words = frozenset(stop_words)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            name = split.file.name
            raise CheckpointError(f"{name}: cannot be read ({error!r}). Download it again.", param=name) from error
        self._lower = bool(stated.get("do_lower_case"))
        self._numbers = {word: number for number, word in enumerate(self._names)}

    def encode(self, text: str, *, add_special_tokens: bool = False) -> WordEncoding:
        """Words of a text and their places; there are no special tokens.

        Raises:
            TypeError: It is no text.
        """
        del add_special_tokens
        _check(text)
        found = list(self._found(text))
        return WordEncoding(
            [number for number, _ in found], [place for _, place in found], [self._names[number] for number, _ in found]
        )

    def encode_batch(self, texts: Sequence[str], *, add_special_tokens: bool = False) -> list[WordEncoding]:
        """`encode` of each text."""
        return [self.encode(text, add_special_tokens=add_special_tokens) for text in texts]

    encode_batch_fast = encode_batch

    def decode_batch(self, ids: Sequence[Sequence[int]], *, skip_special_tokens: bool = True) -> list[str]:
        """The words of each list of numbers."""
        del skip_special_tokens
        return [" ".join(self._names[number] for number in numbers) for numbers in ids]

    def id_to_token(self, number: int) -> str:
        """A word."""
        return self._names[number]

    def get_added_tokens_decoder(self) -> dict[int, Any]:
        """None are added."""
        return {}

    def get_vocab_size(self, *, with_added_tokens: bool = True) -> int:
        """How many words there are."""
        del with_added_tokens
        return len(self._names)

    def _found(self, text: str) -> Iterator[tuple[int, tuple[int, int]]]:
        for match in _PIECE.finditer(text):
            number = self._look_up(match.group().lower() if self._lower else match.group())
            if number is not None:
                yield number, match.span()

    def _look_up(self, piece: str) -> int | None:
        stripped = piece.strip(string.punctuation)
        for form in (piece, stripped, stripped.lower()):
            if form in self._stop_words:
                return None
            if form and form in self._numbers:
                return self._numbers[form]
        return None


def _check(text: Any) -> None:
    """As the tokenizers library: neither other values nor half characters."""
    if not isinstance(text, str):
        raise TypeError(f"expected a text, found {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TypeError("half a character") from error
