"""The real model finds what sentence-transformers finds: every neighbour of 1,500 documents, and the labelled one."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from infinity_emb import InfinityPipeline

pytestmark = [pytest.mark.parity, pytest.mark.timeout(900)]
DOCUMENTS, QUERIES, TOP = 1500, 300, 10


def docstrings() -> list[tuple[str, str]]:
    """First sentence and rest of docstrings of the standard library, in a fixed order; each first sentence once."""
    found: dict[str, str] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if {"site-packages", "test", "tests", "idlelib", "lib2to3"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
                if 20 < len(first) < 200 and len(rest) > 60:
                    found.setdefault(" ".join(first.split()), rest[:400])
        if len(found) >= DOCUMENTS:
            break
    return list(found.items())[:DOCUMENTS]


PAIRS = docstrings()
QUESTIONS = [question for question, _ in PAIRS[:: DOCUMENTS // QUERIES]]
ANSWERS = np.arange(len(PAIRS))[:: DOCUMENTS // QUERIES]
TEXTS = [document for _, document in PAIRS] + QUESTIONS


def ranks(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Similarities `[queries, documents]` of vectors of all documents, then all queries; and their order."""
    similarities = vectors[len(PAIRS) :].astype(np.float64) @ vectors[: len(PAIRS)].T.astype(np.float64)
    return similarities, np.argsort(-similarities, axis=1, kind="stable")


def mean_reciprocal_rank(order: np.ndarray) -> float:
    places = (order[:, :TOP] == ANSWERS[:, None]).argmax(axis=1)
    hit = (order[:, :TOP] == ANSWERS[:, None]).any(axis=1)
    return float(np.where(hit, 1.0 / (places + 1), 0.0).mean())


def agreement(order: np.ndarray, similarities: np.ndarray, wanted: np.ndarray) -> float:
    """Share of the ten best that are the reference's ten best; a tie within rounding may go either way."""
    lowest = np.take_along_axis(similarities, wanted[:, TOP - 1 : TOP], axis=1) - 1e-6
    return float((np.take_along_axis(similarities, order[:, :TOP], axis=1) >= lowest).mean())


@pytest.fixture(scope="module")
def reference(minilm_folder):
    pytest.importorskip("torch")
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(minilm_folder), device="cpu")
    return model.encode(TEXTS, batch_size=32, show_progress_bar=False)


@pytest.fixture(scope="module")
def computed() -> dict[str, np.ndarray]:
    """Vectors by the number format they were computed in: `auto` is float32 on many machines."""
    return {}


@pytest.mark.parametrize(("dtype", "least"), [("float32", 1.0), ("auto", 0.99)])
def test_the_ten_nearest_are_those_of_sentence_transformers(
    dtype, least, minilm_folder, reference, computed, tmp_path, record_property
):
    assert (len(PAIRS), len(QUESTIONS)) == (DOCUMENTS, QUERIES)
    with InfinityPipeline(str(minilm_folder), engine="openvino", dtype=dtype, cache_folder=str(tmp_path)) as pipeline:
        taken = pipeline.card.dtype
        record_property("dtype", taken)
        if taken not in computed:
            computed[taken] = pipeline.encode(TEXTS)
    similarities, wanted = ranks(reference)
    _, order = ranks(computed[taken])
    found = agreement(order, similarities, wanted)
    scores = mean_reciprocal_rank(order), mean_reciprocal_rank(wanted)
    record_property("top10_agreement", found)
    record_property("mrr10", scores)
    assert found >= least
    assert abs(scores[0] - scores[1]) <= 0.002
    assert scores[1] > 0.3  # the labels mean something
