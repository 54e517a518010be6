"""Enumerations answer to the names of the original."""

from __future__ import annotations

import pickle

import pytest

from infinity_emb import primitives


def test_members_answer_to_lower_case_names():
    assert primitives.Device.cpu is primitives.Device.CPU
    assert primitives.InferenceEngine["torch"] is primitives.InferenceEngine.TORCH
    assert primitives.Dtype("float32") == "float32"
    with pytest.raises(AttributeError, match="Device has no member 'gpu'"):
        _ = primitives.Device.gpu


def test_members_survive_pickling():
    assert pickle.loads(pickle.dumps(primitives.Modality.TEXT)) is primitives.Modality.TEXT


def test_every_listed_name_is_there():
    assert all(hasattr(primitives, name) for name in primitives.__all__)
