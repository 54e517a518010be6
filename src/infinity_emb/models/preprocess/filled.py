"""Hot path. Reads text for models that were trained with every text filled up to one length, the filling seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.types import DEFAULT_TEXT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.model import Filling, ModelSpec
    from infinity_emb.types import TextInput, TextOptions


class FilledPreprocessor(TextPreprocessor):
    """Puts padding tokens behind each text, which the model reads as any other token.

    Args:
        spec: The checkpoint.
        filling: With what, and up to where.
    """

    def __init__(self, spec: ModelSpec, filling: Filling) -> None:
        super().__init__(spec)
        self._filling = filling

    def texts(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[Features]:
        """As `TextPreprocessor.texts`; each costs the whole length."""
        return [self._filled(item) for item in super().texts(inputs, options)]

    def pieces(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[list[Features]]:
        """As `TextPreprocessor.pieces`."""
        return [[self._filled(item) for item in made] for made in super().pieces(inputs, options)]

    def _filled(self, item: Features) -> Features:
        missing = self._filling.length - item.cost
        if missing > 0:
            item.token_ids = np.append(item.token_ids, np.full(missing, self._filling.token_id, np.int64))
            item.empty = False
        return item
