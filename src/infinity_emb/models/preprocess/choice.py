"""Picks the preprocessor that reads a checkpoint's inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.models.preprocess.filled import FilledPreprocessor
from infinity_emb.models.preprocess.judge import JudgePreprocessor
from infinity_emb.models.preprocess.late import LatePreprocessor
from infinity_emb.models.preprocess.static import StaticPreprocessor, WordPreprocessor
from infinity_emb.models.preprocess.text import TextPreprocessor

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec


def make_preprocessor(spec: ModelSpec) -> TextPreprocessor:
    """The preprocessor of a checkpoint.

    Raises:
        CheckpointError: Its tokenizer cannot be read, or leaves no room for text.
    """
    if spec.judge is not None and spec.judge.question is not None:
        return JudgePreprocessor(spec, spec.judge.question)
    if spec.late is not None:
        return LatePreprocessor(spec, spec.late)
    if spec.words is not None:
        return WordPreprocessor(spec)
    if spec.static is not None:
        return StaticPreprocessor(spec, spec.static)
    if spec.filling is not None:
        return FilledPreprocessor(spec, spec.filling)
    return TextPreprocessor(spec)
