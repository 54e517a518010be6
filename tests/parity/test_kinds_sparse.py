"""Sparse encoders: the weights of SparseEncoder, for each family, pooling and activation."""

from __future__ import annotations

import numpy as np
import pytest

import texts
import tiny_kinds
from forward import REAL_BACKENDS, batches, opened, spec_of
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.scheduler.runner import Runner
from infinity_emb.types import Task

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
TEXTS = texts.sample(60)[::4]
# what is built → family, old spelling, pooling
CASES = {
    "bert": ("bert", True, {"pooling_strategy": "max"}),
    "bert sum": ("bert", True, {"pooling_strategy": "sum", "word_embedding_dimension": None}),
    "distilbert log twice": ("distilbert", False, {"activation_function": "log1p_relu"}),
    "roberta": ("roberta", False, {"pooling_strategy": "max", "activation_function": "relu"}),
    "modernbert": ("modernbert", False, {}),
    "mpnet sum log twice": ("mpnet", False, {"pooling_strategy": "sum", "activation_function": "log1p_relu"}),
    "xlm-roberta": ("xlm-roberta", True, {}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and the reference's weights of each case."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    kept = {}

    def make(name):
        if name not in kept:
            family, old, pooling = CASES[name]
            folder = tiny_kinds.splade(tmp_path_factory.mktemp("sparse"), family, old=old, **pooling)
            reference = sentence_transformers.SparseEncoder(str(folder), device="cpu")
            kept[name] = folder, reference.encode(TEXTS, convert_to_sparse_tensor=False).numpy()
        return kept[name]

    return make


def weights(backend, spec, most):
    """Weights of all texts as a dense matrix."""
    items = make_preprocessor(spec).texts(TEXTS)
    found = np.zeros((len(items), spec.dim), np.float32)
    runner = Runner(backend)
    for batch in batches(backend, items, most):
        outputs = runner.run(batch)
        for row, (_, position) in enumerate(batch.entries):
            assert (np.diff(outputs["sparse_index"][row]) > 0).all()
            found[position, outputs["sparse_index"][row]] = outputs["sparse"][row]
    return found


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_weights_equal_sentence_transformers(case, engine, made):
    pytest.importorskip(engine)
    folder, wanted = made(case)
    assert (wanted > 0).mean() > 0.05
    assert wanted.std(axis=0).mean() > 0.01
    spec = spec_of(folder)
    assert spec.task is Task.SPARSE
    with opened(engine, spec) as backend:
        for most in (64, 1):
            np.testing.assert_allclose(weights(backend, spec, most), wanted, atol=TOLERANCE, rtol=TOLERANCE)
