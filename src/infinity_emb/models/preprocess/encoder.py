"""Hot path. Asks the tokenizer for plain token ids, without special tokens, and names the item that it cannot read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

    from infinity_emb.models.preprocess.words import WordTokenizer


class Encoder:
    """A tokenizer that is never changed after it was made, so that threads may share it.

    Args:
        tokenizer: Without truncation and padding.
        vocabulary: Rows of the model's embedding table.
    """

    def __init__(self, tokenizer: Tokenizer | WordTokenizer, vocabulary: int) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        added = tokenizer.get_added_tokens_decoder()
        highest = max(tokenizer.get_vocab_size(with_added_tokens=False) - 1, *added, 0)
        # A tokenizer with more tokens than the model has rows is a fault of the checkpoint that some text would meet.
        self._overflows = highest >= vocabulary

    def encode(self, texts: Sequence[Any], name: str, positions: Sequence[int] | None = None) -> list[list[int]]:
        """Token ids of each text, special tokens left out, however long. Releases the interpreter's lock.

        Args:
            texts: To encode.
            name: Of the field they came in, for messages.
            positions: Of the texts in that field; None is their own order.

        Raises:
            InvalidInputError: An item is no text, holds half a surrogate pair, or makes a token unknown to the model.
        """
        try:
            encodings = self.tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError:
            raise self._explain(texts, name, positions) from None
        ids: list[list[int]] = [encoding.ids for encoding in encodings]
        if self._overflows:
            for index, found in enumerate(ids):
                if found and max(found) >= self.vocabulary:
                    where = _where(name, index, positions)
                    raise InvalidInputError(
                        f"{where}: it contains the token {self.tokenizer.id_to_token(max(found))!r} (id {max(found)}), "
                        f"but the model has only {self.vocabulary} rows. Remove it from the text.",
                        param=where,
                    )
        return ids

    def _explain(self, texts: Sequence[Any], name: str, positions: Sequence[int] | None) -> InvalidInputError:
        """Find the item that the tokenizer refused."""
        for index, text in enumerate(texts):
            where = _where(name, index, positions)
            if not isinstance(text, str):
                found = type(text).__name__
                return InvalidInputError(f"{where}: expected a text, found {found}.", param=where)
            try:
                text.encode("utf-8")
            except UnicodeEncodeError as error:
                return InvalidInputError(
                    f"{where}: character {error.start} is half of a surrogate pair (\\u{ord(text[error.start]):04x}), "
                    "which is no text. Send the whole character.",
                    param=where,
                )
        return InvalidInputError(
            f"{name}: the tokenizer refused the texts. This is a bug; please report it.", param=name
        )


def _where(name: str, index: int, positions: Sequence[int] | None) -> str:
    return f"{name}[{index if positions is None else positions[index]}]"
