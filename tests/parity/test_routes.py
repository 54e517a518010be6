"""Routers of embedders: queries and documents as `encode_query` and `encode_document` of sentence-transformers."""

from __future__ import annotations

import numpy as np
import pytest

import measured
import texts
import tiny_routes
from forward import REAL_BACKENDS
from infinity_emb import InfinityPipeline

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
KIND = "queries and documents by routes"  # of rows in the table of docs/models.md
TEXTS = texts.sample(200)[::4]
CASES = {
    "two Dense on bert": tiny_routes.heads,
    "table and bert": tiny_routes.static_queries,
    "roberta and bert": tiny_routes.two_transformers,
}
# torch has no module for a table
PAIRS = [(case, engine) for case in CASES for engine in REAL_BACKENDS if (case[:5], engine) != ("table", "torch")]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and the reference's vectors of each case: of queries, documents, and where nothing is said."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    kept = {}

    def make(case):
        if case not in kept:
            folder = CASES[case](tmp_path_factory.mktemp("model"))
            reference = sentence_transformers.SentenceTransformer(str(folder), device="cpu").float()
            verbs = (reference.encode_query, reference.encode_document, reference.encode)
            kept[case] = folder, [verb(TEXTS, batch_size=8) for verb in verbs]
        return kept[case]

    return make


@pytest.mark.parametrize(("case", "engine"), PAIRS)
def test_each_route_gives_the_vectors_of_sentence_transformers(case, engine, made):
    pytest.importorskip(engine)
    folder, (queries, documents, unsaid) = made(case)
    assert abs(queries - documents).max() > 0.1, "the routes must differ"
    with InfinityPipeline(str(folder), engine=engine, dtype="float32", threads=1, batch_size=16) as pipeline:
        found = [pipeline.encode(TEXTS, input_type=kind) for kind in ("query", "document", None)]
        alone = np.concatenate([pipeline.encode([text], prompt_name="query") for text in TEXTS[::9]])
    wanted = [queries, documents, unsaid, queries[::9]]
    errors = [abs(one - other).max() for one, other in zip([*found, alone], wanted, strict=True)]
    measured.note(KIND, case, engine, max(errors))
    assert max(errors) <= TOLERANCE
