"""Readings of checkpoints by tests: the specification of a folder, and refusals by their message and field."""

from __future__ import annotations

import pytest

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec


def read(folder, **options):
    return read_spec(Checkpoint(folder, str(folder), "local folder"), **options)


def refused(folder, reason, param=None, **options):
    with pytest.raises(CheckpointError, match=reason) as caught:
        read(folder, **options)
    if param is not None:
        assert caught.value.param == param
