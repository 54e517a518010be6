"""Scalings by the length of a text on torch: transformers looks at a whole batch, and at what came before it."""

from __future__ import annotations

import copy
import random

import numpy as np
import pytest

import tiny_more
from forward import compute, features, opened
from infinity_emb.engine.deterministic import DeterministicBackend
from infinity_emb.errors import CheckpointError, NotComputedError
from infinity_emb.models.graph import obtain_graph, registry
from parity.test_graphs import CASES, DYNAMIC, PLAIN, TOLERANCE, expected

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
LENGTHS = (200, 3, 64, 65, 130, 30, 66, 129)


@pytest.mark.parametrize("case", ["llama dynamic", "qwen3 longrope"])
def test_neighbours_and_earlier_texts_change_nothing(case, tmp_path):
    spec = tiny_more.save(tmp_path, *CASES[case])
    items = [features(length, length) for length in LENGTHS]
    model = tiny_more.load(tmp_path, spec)
    wanted = np.concatenate([expected(copy.deepcopy(model), [item], spec) for item in items])
    order = random.Random(4).sample(range(len(items)), len(items))
    with opened("torch", spec) as backend:
        assert DeterministicBackend(backend).layout == backend.layout
        for places in (order, range(len(items))):
            found = compute(backend, [items[place] for place in places])["embedding"]
            np.testing.assert_allclose(found, wanted[list(places)], rtol=0, atol=TOLERANCE)


def test_a_memory_that_is_not_known_is_refused_on_torch(tmp_path):
    nested = {"full_attention": DYNAMIC, "sliding_attention": PLAIN}
    spec = tiny_more.save(tmp_path, "modernbert", {"rope_parameters": nested, "max_position_embeddings": 64})
    with pytest.raises(CheckpointError, match="depends on earlier texts"), opened("torch", spec):
        pass


def test_what_depends_on_the_length_of_a_text_is_not_exported(tmp_path, monkeypatch):
    spec = tiny_more.save(tmp_path, *CASES["qwen3 longrope"])
    monkeypatch.setattr(registry, "_ARCHITECTURES", {})
    with pytest.raises(NotComputedError):
        obtain_graph(spec, cache_folder=tmp_path / "cache")
