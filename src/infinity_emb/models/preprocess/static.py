"""Hot path. Reads text for tables of vectors: plain tokens or words, without what the table is not to count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec.bag import BagSpec
from infinity_emb.models.spec.static import StaticSpec
from infinity_emb.models.spec.token_weights import TokenWeightsSpec
from infinity_emb.types import DEFAULT_TEXT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import TextInput, TextOptions


class StaticPreprocessor(TextPreprocessor):
    """Reads text for a table of token vectors.

    Args:
        spec: The checkpoint.
        static: How its texts are read.
    """

    def __init__(self, spec: ModelSpec, static: StaticSpec) -> None:
        super().__init__(spec)
        self._static = static

    def texts(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[Features]:
        """As `TextPreprocessor.texts`; a text without any token is `empty`, and its vector will be zero."""
        most = self._static.characters
        read = [text[:most] if isinstance(text, str) else text for text in inputs]
        features = super().texts(read, options)
        for item, kept, given in zip(features, read, inputs, strict=True):
            item.truncated |= len(kept) < len(given)
            if self._static.dropped_id is not None:
                item.token_ids = item.token_ids[item.token_ids != self._static.dropped_id]
            if not len(item.token_ids):
                # the row of this token weighs nothing: it is said to belong to a prompt that is left out
                item.token_ids, item.prompt_tokens, item.empty = np.zeros(1, np.int64), 1, True
        return features


class WordPreprocessor(StaticPreprocessor):
    """Reads text for a model of whole words.

    Args:
        spec: The checkpoint.
    """

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__(spec, StaticSpec())
        weighing = (module for module in spec.modules if isinstance(module, (TokenWeightsSpec, BagSpec)))
        weights = next((module.weights for module in weighing), None)
        self._weights = None if weights is None else np.array(weights)

    def texts(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[Features]:
        """As `StaticPreprocessor.texts`; a text whose words all weigh nothing is `empty` too."""
        features = super().texts(inputs, options)
        if self._weights is not None:
            for item in features:
                item.empty |= not self._weights[item.token_ids].any()
        return features
