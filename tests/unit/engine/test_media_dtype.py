from __future__ import annotations

import pytest

import tiny_sound
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.backends.openvino import OpenVinoBackend
from infinity_emb.types import Dtype, Modality


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_sound.tiny_clap(tmp_path_factory.mktemp("clap"))


def formats(folder, dtype):
    """Number formats of texts and of sounds, and the fingerprint."""
    args = EngineArgs(model_name_or_path=str(folder), engine="openvino", dtype=dtype, fidelity=0.01, model_warmup=False)
    model = AsyncEmbeddingEngine.from_args(args)._model
    try:
        sounds = model.towers[Modality.AUDIO].backends[0].report.dtype
        return model.backends[0].report.dtype, sounds, model.card.extra["fingerprint"]
    finally:
        model.close()


def test_sounds_are_computed_in_float32_where_only_texts_were_checked_in_a_faster_format(folder, monkeypatch):
    monkeypatch.setattr(OpenVinoBackend, "fast_dtypes", classmethod(lambda cls, options: (Dtype.BFLOAT16,)))  # noqa: ARG005
    text, sound, mixed = formats(folder, "auto")
    assert (text, sound) == (Dtype.BFLOAT16, Dtype.FLOAT32)
    text, sound, named = formats(folder, "bfloat16")
    assert (text, sound) == (Dtype.BFLOAT16, Dtype.BFLOAT16)
    assert mixed != named
