"""The rarer modules of sentence-transformers: layers averaged, vectors coded, whole words, convolutions, recurrence."""

from __future__ import annotations

import numpy as np
import pytest

import measured
import texts
import tiny_modules
from forward import REAL_BACKENDS, compute, opened, spec_of
from infinity_emb.models.preprocess.choice import make_preprocessor

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
TEXTS = texts.sample(200)[::4]
WORD_TEXTS = [*(text for text in texts.sample(200) if {"quick", "fox", "tea", "coffee"} & set(text.split()))][:47]
WORD_TEXTS += ["Hello, hello HELLO world World! (fox) «tea» UPPER upper", "of tea", "fox the of"]
# kinds of rows in the table of docs/models.md
LAYERS, CODES, WORDS = "layers averaged", "sparse encoder (codes)", "whole words"
STATES = "modules on token states"
STATE_CASES = {"bert convolutions": tiny_modules.convolved, "bert weighed": tiny_modules.weighed}
LAYER_CASES: dict[str, tuple[str, dict]] = {
    "bert": ("bert", {}),
    "bert all layers": ("bert", {"start": 0, "old": True}),
    "bert switched off": ("bert", {"switched": False}),
    "modernbert": ("modernbert", {"start": 0}),
}
# other architectures that tell the states of their layers; one backend is enough to see that they are the right ones
LAYER_FAMILIES = ("albert", "distilbert", "gemma3_text", "mpnet", "qwen3", "xlm-roberta")
LAYER_ENGINE = "onnxruntime"
CODE_CASES: dict[str, tuple[str, dict]] = {
    "bert": ("bert", {}),
    "roberta standardized, fewer": ("roberta", {"normalize": True, "max_active_dims": 4, "old": True}),
}


WORD_CASES: dict[str, dict] = {
    "table": {},
    "table in the root, of the first generation": {"place": "", "old": True, "lower": True, "limit": 30},
    "table of several modes": {"pooling": ["max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]},
    "weights": {"inside": ("WordWeights",)},
    "weights of several modes": {
        "inside": ("WordWeights",),
        "pooling": ["max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"],
    },
    "convolutions": {"inside": ("CNN",), "old": True},
    "recurrent": {"inside": ("LSTM",), "pooling": ["max", "lasttoken", "mean"]},
    "recurrent one way": {"inside": ("LSTM",), "both_ways": False, "layers": 2, "old": True},
    "all, recurrent in layers": {"inside": ("WordWeights", "CNN", "LSTM"), "layers": 3},
}
BAG_CASES: dict[str, dict] = {
    "bag": {"old": True, "inside": ()},
    "bag, each word once, normalised": {"counted": False},
    "bag, dense": {"inside": ("Dense",)},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and the reference's vectors of each case."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    kept = {}

    def make(build, *arguments, kind="SentenceTransformer", texts=TEXTS, batch_size=8, **options):
        name = (build, arguments, str(options))
        if name not in kept:
            folder = build(tmp_path_factory.mktemp("model"), *arguments, **options)
            reference = getattr(sentence_transformers, kind)(str(folder), device="cpu")
            sparse = {"convert_to_sparse_tensor": False} if kind == "SparseEncoder" else {}
            vectors = reference.encode(texts, batch_size=batch_size, **sparse)
            kept[name] = folder, vectors.numpy() if sparse else vectors
        return kept[name]

    return make


def outputs(backend, spec, texts, most):
    """Vectors of all texts; sparse ones as a dense matrix."""
    found = compute(backend, make_preprocessor(spec).texts(texts), most)
    if "sparse" not in found:
        return found["embedding"]
    made = np.zeros((len(texts), spec.dim), np.float32)
    for row, index, weights in zip(made, found["sparse_index"], found["sparse"], strict=True):
        assert (np.diff(index) > 0).all()
        row[index] = weights
    return made


def check(row, engine, folder, wanted, texts=TEXTS):
    spec = spec_of(folder)
    assert wanted.std(axis=0).mean() > 0.01, "the reference must tell texts apart"
    with opened(engine, spec) as backend:
        for most in (64, 1):
            found = outputs(backend, spec, texts, most)
            measured.note(*row, engine, abs(found - wanted).max())
            np.testing.assert_allclose(found, wanted, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("case", LAYER_CASES)
def test_layers_are_averaged_as_sentence_transformers_does(case, engine, made):
    pytest.importorskip(engine)
    model_type, options = LAYER_CASES[case]
    folder, wanted = made(tiny_modules.layer_mean, model_type, **options)
    check((LAYERS, case), engine, folder, wanted)


@pytest.mark.parametrize("family", LAYER_FAMILIES)
def test_every_family_tells_the_states_that_transformers_tells(family, made):
    pytest.importorskip(LAYER_ENGINE)
    folder, wanted = made(tiny_modules.layer_mean, family, start=0)
    check((LAYERS, family), LAYER_ENGINE, folder, wanted)


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("case", CODE_CASES)
def test_codes_equal_sentence_transformers(case, engine, made):
    pytest.importorskip(engine)
    model_type, options = CODE_CASES[case]
    folder, wanted = made(tiny_modules.coded, model_type, kind="SparseEncoder", **options)
    assert ((wanted != 0).sum(axis=1) <= options.get("max_active_dims", 6)).all()
    assert (wanted > 0).sum() > 2 * len(TEXTS)
    check((CODES, case), engine, folder, wanted)


def worded(case):
    """Texts with words that the vocabularies know; those without one are zero, but for poolings that make nothing of it."""
    texts = ["", "?!", *WORD_TEXTS]
    return texts if WORD_CASES.get(case, {}).get("pooling", "mean") == "mean" else WORD_TEXTS


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("case", WORD_CASES)
def test_models_of_whole_words_equal_sentence_transformers(case, engine, made):
    """The reference reads texts one by one: together, its convolutions reach into the padding."""
    pytest.importorskip(engine)
    texts = worded(case)
    folder, wanted = made(tiny_modules.of_words, texts=texts, batch_size=1, **WORD_CASES[case])
    check((WORDS, case), engine, folder, wanted, texts)


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("case", BAG_CASES)
def test_bags_of_words_equal_sentence_transformers(case, engine, made):
    pytest.importorskip(engine)
    folder, wanted = made(tiny_modules.bag, texts=worded(case), **BAG_CASES[case])
    check((WORDS, case), engine, folder, wanted, worded(case))


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("case", STATE_CASES)
def test_modules_behind_a_transformer_stay_inside_each_text(case, engine, made):
    pytest.importorskip(engine)
    folder, wanted = made(STATE_CASES[case], "bert", batch_size=1)
    check((STATES, case), engine, folder, wanted)
