"""Late interaction models: the vectors of MultiVectorEncoder for queries and documents, in all three layouts."""

from __future__ import annotations

import numpy as np
import pytest

import measured
import texts
import tiny_kinds
from forward import REAL_BACKENDS, batches, opened, spec_of
from infinity_emb.engine.late import finish_tokens, score_late
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.scheduler.runner import Runner
from infinity_emb.types import Task, TextOptions

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
KIND = "late interaction"  # of rows in the table of docs/models.md
TEXTS = [text for text in texts.sample(60) if text.strip()][::4]
PROMPTS = {"query": "[Q] ", "document": "[D] "}
PUNCTUATION = {"MultiVectorMask": {"skiplist_words": [".", "?", "!", ","]}}
FIXED = {"strategy": "fixed", "attend": False, "length": 24}
# what is built → family and how
CASES: dict[str, tuple[str, dict]] = {
    "own": ("bert", {"prompts": PROMPTS, "modules": PUNCTUATION}),
    "own filled": ("bert", {"modules": PUNCTUATION, "options": {"query_expansion": FIXED, "document_length": 30}}),
    "own filled and seen": ("bert", {"options": {"query_expansion": FIXED | {"attend": True}}}),
    "own filled at least": (
        "modernbert",
        {"options": {"query_expansion": {"strategy": "min", "length": 12, "token": "[SEP]"}, "query_length": 30}},
    ),
    "own pooled": (
        "bert",
        {
            "modules": PUNCTUATION
            | {
                "HierarchicalTokenPooling": {
                    "pool_factor": 2.0,
                    "num_protected_tokens": 1,
                    "normalize_embeddings": True,
                }
            }
        },
    ),
    "own skips in queries": (
        "roberta",
        {"modules": {"MultiVectorMask": {"skiplist_words": ["."], "skiplist_tasks": ["query", "document"]}}},
    ),
    "pylate": (
        "bert",
        {"layout": "pylate", "query_prefix": "[unused0] ", "document_prefix": "[D] ", "query_length": 20},
    ),
    "pylate plain": (
        "modernbert",
        {
            "layout": "pylate",
            "do_query_expansion": False,
            "query_length": 16,
            "document_length": 25,
            "skiplist_words": [],
        },
    ),
    "stanford": ("bert", {"layout": "stanford", "query_maxlen": 16, "doc_maxlen": 30, "attend_to_mask_tokens": False}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and the reference's vectors and scores of each case."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    kept = {}

    def make(name):
        if name not in kept:
            family, options = CASES[name]
            folder = tiny_kinds.late_model(tmp_path_factory.mktemp("late"), family, **options)
            reference = sentence_transformers.MultiVectorEncoder(str(folder), device="cpu")
            documents = reference.encode_document(TEXTS, convert_to_numpy=False)
            queries = reference.encode_query(TEXTS[:8], convert_to_numpy=False)
            scores = reference.similarity(queries, documents)
            vectors = [[one.numpy() for one in many] for many in (queries, documents)]
            kept[name] = folder, *vectors, np.asarray(scores)
        return kept[name]

    return make


def vectors(backend, spec, inputs, kind, most=64):
    options = TextOptions(input_type=kind)
    items = make_preprocessor(spec).texts(inputs, options)
    runner, found = Runner(backend), {}
    for batch in batches(backend, items, most):
        for row, (_, position) in enumerate(batch.entries):
            found[position] = runner.run(batch)["tokens"][row]
    return finish_tokens([found[index] for index in range(len(items))], items, spec, options)


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_vectors_and_scores_equal_sentence_transformers(case, engine, made):
    pytest.importorskip(engine)
    folder, queries, documents, scores = made(case)
    spec = spec_of(folder)
    assert spec.task is Task.MULTI_VECTOR
    with opened(engine, spec) as backend:
        for most in (64, 1):
            own_queries = vectors(backend, spec, TEXTS[:8], "query", most)
            own_documents = vectors(backend, spec, TEXTS, "document", most)
            for found, wanted in ((own_queries, queries), (own_documents, documents)):
                assert [one.shape for one in found] == [one.shape for one in wanted]
                pairs = list(zip(found, wanted, strict=True))
                measured.note(KIND, case, engine, max(abs(mine - theirs).max() for mine, theirs in pairs))
                for mine, theirs in pairs:
                    np.testing.assert_allclose(mine, theirs, atol=TOLERANCE)
    own_scores = np.stack([score_late(query, own_documents, mean=False) for query in own_queries])
    np.testing.assert_allclose(own_scores, scores, atol=1e-4)
