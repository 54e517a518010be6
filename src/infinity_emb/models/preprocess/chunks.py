"""Reads a document that comes in chunks as one text, and finds the tokens of each chunk in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tokenizers import Tokenizer

    from infinity_emb.models.features import Features
    from infinity_emb.models.preprocess.template import Template, Window
    from infinity_emb.models.preprocess.words import WordTokenizer


class Chunked(NamedTuple):
    """A document read as one text.

    Attributes:
        features: Of the whole text, special tokens included.
        spans: For each chunk its first token in them, and the one behind its last.
    """

    features: Features
    spans: list[tuple[int, int]]


def read_chunks(
    tokenizer: Tokenizer | WordTokenizer,
    template: Template,
    prompt: str,
    chunks: Sequence[str],
    window: Window,
    where: str,
) -> Chunked:
    """Tokenize the chunks as one text; a token belongs to the chunk that holds its last character.

    Chunks are joined by a space where neither the one's end nor the other's start is one.

    Raises:
        InvalidInputError: No chunks, no text, a chunk without tokens, or more tokens than the model reads.
    """
    text, ends = prompt, []
    for index, chunk in enumerate(chunks):
        if not isinstance(chunk, str):
            raise InvalidInputError(f"{where}[{index}]: expected a text, found {type(chunk).__name__}.", param=where)
        if index and text and chunk and not (text[-1].isspace() or chunk[0].isspace()):
            text += " "
        text += chunk
        ends.append(len(text))
    if not ends:
        raise InvalidInputError(f"{where}: a document must hold at least one chunk.", param=where)
    try:
        encoding = tokenizer.encode(text, add_special_tokens=False)
    except (TypeError, UnicodeEncodeError) as error:
        raise InvalidInputError(f"{where}: it holds half a character (a lone surrogate).", param=where) from error
    room = window.limit - template.specials
    if len(encoding.ids) > room:
        raise InvalidInputError(
            f"{where}: the document has {len(encoding.ids)} tokens, the model reads {room} at once. Chunks cannot see "
            "what is cut off, so nothing is: send the document in several parts.",
            param=where,
        )
    spans = _spans(encoding.offsets, len(prompt), ends, len(template.head))
    for index, (start, stop) in enumerate(spans):
        if start == stop:
            raise InvalidInputError(f"{where}[{index}]: the chunk has no tokens. Leave it out.", param=where)
    return Chunked(template.single(encoding.ids, window), spans)


def _spans(offsets: Sequence[tuple[int, int]], first: int, ends: list[int], head: int) -> list[tuple[int, int]]:
    spans = []
    token, count = 0, len(offsets)
    while token < count and offsets[token][1] <= first:
        token += 1
    for end in ends:
        start = token
        while token < count and offsets[token][1] <= end:
            token += 1
        spans.append((start + head, token + head))
    return spans
