"""Static embeddings: the vectors of StaticEmbedding, and of model2vec by its formula."""

from __future__ import annotations

import random

import numpy as np
import pytest
from safetensors.numpy import load_file

import measured
import texts
import tiny_static
from infinity_emb import InfinityPipeline

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
KIND = "static embeddings"  # of rows in the table of docs/models.md
# beyond the odd ones: nothing known, one unknown word, more than 512 tokens of two lengths in characters
LONG = [" ".join(texts.sample_words(random.Random(5), 700)), "".join(random.Random(6).choices("abcdefgh", k=900))]
TEXTS = [*texts.sample(200)[::4], "", " ", "tea [UNK] 世 ☃", *LONG]
ENGINES = ("openvino", "onnxruntime")
# what is built → how
CASES: dict[str, dict] = {
    "root": {"modules": ()},
    "folder, normalised": {"place": "0_StaticEmbedding"},
    "model2vec's root": {"place": ".", "layout": "sentence-transformers with model2vec's names"},
    "shared and weighed": {"layout": "sentence-transformers with model2vec's names", "shared": True},
    "cut at 12": {"limit": 12, "modules": ()},
    "float16": {"dtype": "float16"},
    "unigram": {"tokenizer": "xlm_roberta"},
}
MODEL2VEC: dict[str, dict] = {
    "model2vec": {},
    "model2vec, normalised": {"normalize": True},
    "model2vec cut at 9": {"max_length": 9, "normalize": True},
    "model2vec uncut": {"max_length": None},
    "model2vec shared and weighed": {"shared": True, "normalize": True},
}


def check(case, folder, engine, expected):
    """Together and alone; the self-check is on."""
    with InfinityPipeline(str(folder), engine=engine, dtype="float32", threads=1, batch_size=16) as pipeline:
        together = pipeline.encode(TEXTS)
        alone = np.concatenate([pipeline.encode([text]) for text in TEXTS[::9]])
    measured.note(KIND, case, engine, max(abs(together - expected).max(), abs(alone - expected[::9]).max()))
    assert abs(together - expected).max() <= TOLERANCE
    assert abs(alone - expected[::9]).max() <= TOLERANCE


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_vectors_equal_sentence_transformers(case, engine, tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = tiny_static.static(tmp_path / "model", **CASES[case])
    reference = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    expected = reference.float().encode(TEXTS, batch_size=8)
    assert (expected[TEXTS.index("")] == 0).all()
    check(case, folder, engine, expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", MODEL2VEC)
def test_vectors_follow_the_formula_of_model2vec(case, engine, tmp_path):
    """The mean of the rows of all known tokens within the limit; checked against the package itself, version 0.10."""
    folder = tiny_static.static(tmp_path / "model", layout="model2vec", **MODEL2VEC[case])
    tensors = load_file(folder / "model.safetensors")
    rows = tensors["embeddings"]
    if MODEL2VEC[case].get("shared"):
        rows = rows[tensors["mapping"]] * tensors["weights"][:, None]
    expected = np.zeros((len(TEXTS), tiny_static.DIM))
    for number, text in enumerate(TEXTS):
        ids = tiny_static.ids(folder, text)
        if ids:
            mean = rows[ids].mean(axis=0)
            expected[number] = mean / np.linalg.norm(mean) if MODEL2VEC[case].get("normalize") else mean
    check(case, folder, engine, expected)
