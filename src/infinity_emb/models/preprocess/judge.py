"""Hot path. Puts a query and a document to a language model that reranks, in the very tokens its authors use."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from infinity_emb.errors import CheckpointError, InvalidInputError
from infinity_emb.models.features import Features
from infinity_emb.models.preprocess.prompts import resolve_prompt
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.types import DEFAULT_TEXT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.spec.judge import Question
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import TextOptions

_QUERY_SHARE = 4  # a query keeps at most three of four tokens


class _Frame(NamedTuple):
    """What is the same for every document of a request.

    Attributes:
        head: Tokens before everything.
        between: Tokens between query and document.
        tail: Tokens behind the document.
        query: The query as it is written into the question.
        document: Around the document: what comes before it, and behind it.
        limit: Tokens of an input, all of these included.
    """

    head: list[int]
    between: list[int]
    tail: list[int]
    query: str
    document: tuple[str, str]
    limit: int

    @property
    def room(self) -> int:
        """Tokens that are left for query and document."""
        return self.limit - len(self.head) - len(self.between) - len(self.tail)


class JudgePreprocessor(TextPreprocessor):
    """Reads pairs for a model that has a `Question`; the instruction is the prompt of a request."""

    def __init__(self, spec: ModelSpec, question: Question) -> None:
        super().__init__(spec)
        self._question = question
        fixed = (question.begin, *([] if question.joined else [question.between]), *question.end)
        texts = [text for text in fixed if "{" not in text]
        ids = self._encoder.encode(texts, "question")
        self._fixed = dict(zip(texts, ids, strict=True))
        if sum(map(len, ids)) >= spec.max_length:
            raise CheckpointError(
                f"the longest input, {spec.max_length} tokens, leaves no room beside the question that this model is "
                "asked. Correct model_max_length in tokenizer_config.json.",
                param="max_seq_length",
            )

    def pairs(
        self, query: str, documents: Sequence[str], options: TextOptions = DEFAULT_TEXT_OPTIONS
    ) -> list[Features]:
        """Features of one query with each document. A cut takes from the document, never from what stands behind it.

        Raises:
            InvalidInputError: As `texts`, or no room is left for a document.
        """
        frame = self._frame(query, options)
        if self._question.joined:
            return self._joined(frame, documents, options)
        (asked,) = self._pieces([frame.query], frame.limit * (_QUERY_SHARE - 1) // _QUERY_SHARE, "query")
        return self._apart(frame, asked, documents, options)

    def text_pairs(
        self, pairs: Sequence[tuple[str, str]], options: TextOptions = DEFAULT_TEXT_OPTIONS
    ) -> list[Features]:
        """Features of unrelated pairs, in order.

        Raises:
            InvalidInputError: As `pairs`.
        """
        return [self.pairs(first, [second], options)[0] for first, second in pairs]

    def _frame(self, query: str, options: TextOptions) -> _Frame:
        question = self._question
        if not isinstance(query, str):
            raise InvalidInputError(f"query: expected a text, found {type(query).__name__}.", param="query")
        if options.truncation_side == "left":
            raise InvalidInputError(
                "truncation_side 'left' is not offered by this model; documents are cut at their end.",
                param="truncation_side",
            )
        given = resolve_prompt(self._spec, options)
        instruction = given or question.instruction
        asked = question.query
        if given and question.instructed:
            asked = question.instructed + asked
        before, _, behind = asked.partition("{query}")
        head, _, foot = question.document.partition("{document}")
        tail = [token for text in question.end for token in self._ids(text, instruction)]
        return _Frame(
            self._ids(question.begin, instruction),
            [] if question.joined else self._ids(question.between, instruction),
            tail,
            before.replace("{instruction}", instruction) + query + behind,
            (head, foot),
            min(self._spec.max_length, options.max_length or self._spec.max_length),
        )

    def _ids(self, text: str, instruction: str) -> list[int]:
        found = self._fixed.get(text)
        if found is None:
            (found,) = self._encoder.encode([text.replace("{instruction}", instruction)], "prompt")
        return found

    def _joined(self, frame: _Frame, documents: Sequence[str], options: TextOptions) -> list[Features]:
        head, foot = frame.document
        start = frame.query + self._question.between + head
        _check_texts(documents)
        found = self._surviving.encode(
            [start + document + foot for document in documents], max(frame.room, 0) + 1, "documents", left=False
        )
        return [self._made(frame, kept.ids, frame.room, index, options) for index, kept in enumerate(found)]

    def _apart(self, frame: _Frame, asked: list[int], documents: Sequence[str], options: TextOptions) -> list[Features]:
        head, foot = frame.document
        _check_texts(documents)
        room = frame.room - len(asked)
        found = self._surviving.encode(
            [head + document + foot for document in documents], max(room, 0) + 1, "documents", left=False
        )
        started = frame._replace(head=[*frame.head, *asked, *frame.between])
        return [self._made(started, kept.ids, room, index, options) for index, kept in enumerate(found)]

    def _made(self, frame: _Frame, ids: list[int], room: int, index: int, options: TextOptions) -> Features:
        if room <= 0:
            raise InvalidInputError(
                f"query: with the question this model is asked it leaves no room for a document within {frame.limit} "
                "tokens. Shorten the query or the instruction, or raise max_tokens.",
                param="query",
            )
        truncated = len(ids) > room
        if truncated and not options.truncate:
            raise InvalidInputError(
                f"documents[{index}] leaves the limit of {frame.limit} tokens, question included. "
                "Shorten it, or leave `truncate` on to have it cut.",
                param=f"documents[{index}]",
            )
        return Features(np.array([*frame.head, *ids[:room], *frame.tail], np.int64), truncated=truncated)

    def _pieces(self, texts: list[str], limit: int, name: str) -> list[list[int]]:
        return [kept.ids[:limit] for kept in self._surviving.encode(texts, limit, name, left=False)]


def _check_texts(documents: Sequence[str]) -> None:
    for index, document in enumerate(documents):
        if not isinstance(document, str):
            raise InvalidInputError(
                f"documents[{index}]: expected a text, found {type(document).__name__}.", param=f"documents[{index}]"
            )
