"""The public names of the package."""

from __future__ import annotations

import importlib

import pytest

import infinity_emb


@pytest.mark.parametrize("name", infinity_emb.__all__)
def test_every_public_name_can_be_imported_and_is_listed(name):
    assert getattr(importlib.import_module("infinity_emb"), name) is not None
    assert name in dir(infinity_emb)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = infinity_emb.nonsense
