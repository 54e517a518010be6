"""OpenAI's answer with base64 is written without the JSON writer, and is byte for byte what that would write."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import orjson
import pytest

from infinity_emb.server import envelope
from infinity_emb.server.options import OutputForm
from infinity_emb.types import EmbeddingDtype, Usage


@pytest.fixture(autouse=True)
def _same_name_and_time(monkeypatch):
    monkeypatch.setattr(envelope, "new_id", lambda: "1")
    monkeypatch.setattr(envelope, "time", SimpleNamespace(time=lambda: 1.5))


@pytest.mark.parametrize("width", [1, 2, 3, 384, 385], ids=lambda width: f"{width}-numbers")
@pytest.mark.parametrize("count", [1, 2, 256, 257, 258])
def test_base64_written_by_hand_is_what_the_json_writer_writes(count, width):
    vectors = np.random.default_rng(count).standard_normal((count, width)).astype(np.float32)
    embedded = SimpleNamespace(
        vectors=vectors,
        form=OutputForm(base64=True, dtype=EmbeddingDtype.FLOAT32),
        model='a "model"',
        usage=Usage(7, (0,)),
    )
    assert envelope.packed_envelope(embedded) == orjson.dumps(envelope.envelope(embedded))
