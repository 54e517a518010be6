"""Hot path. Reads the inputs of a late interaction model: markers, a length for each kind, queries filled up."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.types import DEFAULT_TEXT_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.late import LateSpec
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import TextInput, TextOptions


class LatePreprocessor(TextPreprocessor):
    """An input that is not called a query is a document."""

    def __init__(self, spec: ModelSpec, late: LateSpec) -> None:
        super().__init__(spec)
        self._late = late

    def texts(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[Features]:
        """Features of queries or documents, in order.

        Raises:
            InvalidInputError: As for any text.
        """
        is_query = asks(options)
        limit = self._late.query_length if is_query else self._late.document_length
        if limit is not None:
            options = replace(options, max_length=min(limit, options.max_length or limit))
        if options.prompt is None and options.prompt_name is None and options.input_type is None:
            options = replace(options, input_type="document")
        made = super().texts(inputs, options)
        expansion = self._late.expansion
        if is_query and expansion is not None:
            for features in made:
                missing = expansion.length - features.cost
                if missing > 0:
                    _fill(features, missing, expansion.token_id, seen=expansion.attend)
        return made


def asks(options: TextOptions) -> bool:
    """Whether the inputs of a request are queries."""
    return options.input_type == "query" or options.prompt_name == "query"


def _fill(features: Features, missing: int, token_id: int, *, seen: bool) -> None:
    features.token_ids = np.concatenate([features.token_ids, np.full(missing, token_id, np.int64)])
    if features.type_ids is not None:
        features.type_ids = np.concatenate([features.type_ids, np.zeros(missing, np.int64)])
    features.unseen_tokens = 0 if seen else missing
