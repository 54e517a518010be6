from __future__ import annotations

import pytest

from infinity_emb.errors import InvalidInputError
from infinity_emb.models.dummy import DummyPreprocessor, dummy_spec


def test_an_unknown_prompt_is_refused_by_name_when_tokenizing_too():
    with pytest.raises(InvalidInputError, match="'nobody' is not a prompt of this model"):
        DummyPreprocessor(dummy_spec("m", None)).tokenize(["a"], prompt_name="nobody")
