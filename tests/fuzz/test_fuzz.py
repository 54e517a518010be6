"""A short run of every fuzzer, and everything that ever broke one."""

from __future__ import annotations

import logging
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from corpus import interesting, kept
from mutate import mutated
from targets import TARGETS

INPUTS = 1500


@pytest.fixture
def target(request, tmp_path, monkeypatch):
    monkeypatch.setattr("infinity_emb.models.hub.unpack.os.fsync", lambda _: None)
    logging.getLogger("infinity_emb").disabled = True
    made = request.param(tmp_path)
    yield made
    if hasattr(made, "close"):
        made.close()
    logging.getLogger("infinity_emb").disabled = False


@pytest.mark.parametrize("target", TARGETS, ids=lambda kind: kind.name, indirect=True)
def test_nothing_breaks_it(target):
    for data in (*kept(target.name), *interesting(target.name), *target.seeds):
        target.run(data)
    chance = random.Random(11)
    for number in range(INPUTS * target.share // 8):
        data = mutated(target.seeds, chance)
        try:
            target.run(data)
        except Exception as error:
            raise AssertionError(f"input {number}: {data[:300]!r}") from error
