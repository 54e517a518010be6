"""The checkpoint and the preprocessor of the dummy engine, which needs no files: bytes are its tokens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.errors import ConfigurationError, InvalidInputError
from infinity_emb.models.features import Features
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.prompts import resolve_prompt
from infinity_emb.models.spec.model import Activation, ModelSpec, NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.types import DEFAULT_TEXT_OPTIONS, Task, TextOptions, TokenInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.types import TextInput

DUMMY_DIM = 384
DUMMY_MAX_LENGTH = 512


def dummy_spec(model_id: str, task: Task | None) -> ModelSpec:
    """A specification without files."""
    task = task or Task.EMBED
    if task in {Task.SPARSE, Task.MULTI_VECTOR}:
        raise ConfigurationError(
            f"--engine dummy does not play the task {task}; choose embed, rerank or classify.", param="task"
        )
    labels = {Task.EMBED: (), Task.RERANK: ("LABEL_0",), Task.CLASSIFY: ("LABEL_0", "LABEL_1", "LABEL_2")}[task]
    embeds = task is Task.EMBED
    return ModelSpec(
        checkpoint=Checkpoint(Path(), model_id, "no files (dummy engine)"),
        folder=Path(),
        config={},
        model_type="dummy",
        architecture="",
        weights=(),
        task=task,
        modules=(PoolingSpec((PoolingMode.MEAN,)), NormalizeSpec()) if embeds else (),
        hidden_size=DUMMY_DIM,
        dim=DUMMY_DIM if embeds else 0,
        max_length=DUMMY_MAX_LENGTH,
        labels=labels,
        activation=Activation.IDENTITY if embeds else (Activation.SOFTMAX if len(labels) > 1 else Activation.SIGMOID),
    )


class DummyPreprocessor:
    """Same members as `TextPreprocessor`; a token is a byte of UTF-8, behind one leading 0."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec

    def texts(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[Features]:
        """Features of each input, in order."""
        prompt = self.resolve_prompt(options)
        if prompt:
            inputs = [prompt + item if isinstance(item, str) else item for item in inputs]
        return _features(inputs, options)

    def pairs(
        self, query: str, documents: Sequence[str], options: TextOptions = DEFAULT_TEXT_OPTIONS
    ) -> list[Features]:
        """Features of one query with each document."""
        return _features([f"{query}\0{text}" for text in documents], options)

    def text_pairs(
        self, pairs: Sequence[tuple[str, str]], options: TextOptions = DEFAULT_TEXT_OPTIONS
    ) -> list[Features]:
        """Features of unrelated pairs."""
        return _features([f"{first}\0{second}" for first, second in pairs], options)

    def resolve_prompt(self, options: TextOptions) -> str:
        """The text put before each input."""
        return resolve_prompt(self._spec, options)

    def tokenize(
        self, texts: Sequence[str], *, add_special_tokens: bool = True, prompt_name: str | None = None
    ) -> list[list[TokenInfo]]:
        """Bytes as tokens; `prompt_name` puts that prompt first, as for `texts`."""
        start = [TokenInfo(0, "\0", True, None, None)] if add_special_tokens else []
        prompt = self.resolve_prompt(TextOptions(prompt_name=prompt_name))
        return [
            start + [TokenInfo(b, chr(b), False, i, i + 1) for i, b in enumerate((prompt + text).encode())]
            for text in texts
        ]

    def decode(self, ids: Sequence[Sequence[int]], *, skip_special_tokens: bool = True) -> list[str]:
        """Bytes back to text."""
        return [
            bytes(number for number in item if 0 < number < 256 or not skip_special_tokens).decode(errors="replace")
            for item in ids
        ]


def _features(inputs: Sequence[TextInput], options: TextOptions) -> list[Features]:
    """Features of whole inputs; their token ids are pieces of one array."""
    limit = min(options.max_length or DUMMY_MAX_LENGTH, DUMMY_MAX_LENGTH)
    read = [_bytes_of(item, index) for index, item in enumerate(inputs)]
    lengths = [len(data) for data in read]
    if max(lengths, default=0) > limit and not options.truncate:
        index = next(index for index, length in enumerate(lengths) if length > limit)
        raise InvalidInputError(f"Item {index} has {lengths[index]} tokens, at most {limit} are allowed.")
    kept = [data[:limit] or b"\0" for data in read]
    ids = np.frombuffer(b"".join(kept), np.uint8).astype(np.int64)
    features = []
    end = 0
    for data, length in zip(kept, lengths, strict=True):
        start, end = end, end + len(data)
        features.append(Features(ids[start:end], truncated=length > limit))
    return features


def _bytes_of(item: TextInput, index: int) -> bytes:
    try:
        return b"\0" + item.encode() if isinstance(item, str) else bytes(item)
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"Item {index} holds half a character (a lone surrogate).") from error
    except ValueError as error:
        raise InvalidInputError(f"Item {index} has a token id outside 0..255.") from error
