"""The real model: every vector equals sentence-transformers in float32, on every backend, alone and in mixed batches."""

from __future__ import annotations

import base64
import random

import httpx
import numpy as np
import pytest

import measured
import texts
from forward import REAL_BACKENDS, compute, compute_alone, opened, spec_of
from infinity_emb import InfinityPipeline
from infinity_emb.models.preprocess.text import TextPreprocessor
from serving import serve

pytestmark = [pytest.mark.parity, pytest.mark.timeout(600)]
TOLERANCE = 1e-5
KIND, ROW = "real model", "all-MiniLM-L6-v2"  # in the table of docs/models.md
COUNT = 500
MIXED = 60
LONGEST_WORDS = 400


def five_hundred() -> list[str]:
    """Odd ones, repeated ones, and 1 to 400 words of several scripts; most are short, as what people send is."""
    chance = random.Random(11)
    made = list(texts.ODD)
    made += [" ".join(texts.sample_words(chance, words)) for words in (1, 2, 399, LONGEST_WORDS)]
    while len(made) < COUNT - 30:
        words = min(LONGEST_WORDS, max(1, int(chance.lognormvariate(3.2, 1.1))))
        made.append(" ".join(texts.sample_words(chance, words)))
    made += chance.choices(made, k=COUNT - len(made))
    chance.shuffle(made)
    return made


TEXTS = five_hundred()


@pytest.fixture(scope="module")
def reference(minilm_folder):
    torch = pytest.importorskip("torch")
    library = pytest.importorskip("sentence_transformers")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    model = library.SentenceTransformer(str(minilm_folder), device="cpu")
    vectors = model.encode(TEXTS, batch_size=16, show_progress_bar=False)
    torch.set_num_threads(before)
    return vectors


def test_the_texts_are_what_they_are_meant_to_be():
    words = [len(text.split()) for text in TEXTS]
    assert len(TEXTS) == COUNT
    assert len(set(TEXTS)) < COUNT
    assert {"", " "} < set(TEXTS)
    assert max(words) == LONGEST_WORDS
    assert {0, 1, 2} < set(words)


@pytest.mark.parametrize("engine", REAL_BACKENDS)
def test_mixed_batches_give_the_vectors_of_sentence_transformers(engine, minilm_folder, reference):
    pytest.importorskip(engine)
    with InfinityPipeline(str(minilm_folder), engine=engine, dtype="float32", threads=1) as pipeline:
        vectors = pipeline.encode(TEXTS)
    assert vectors.shape == (COUNT, 384)
    assert vectors.dtype == np.float32
    measured.note(KIND, ROW, engine, abs(vectors - reference).max())
    assert abs(vectors - reference).max() <= TOLERANCE


@pytest.mark.parametrize("engine", REAL_BACKENDS)
def test_texts_alone_give_the_vectors_of_sentence_transformers(engine, minilm_folder, reference):
    pytest.importorskip(engine)
    spec = spec_of(minilm_folder)
    items = TextPreprocessor(spec).texts(TEXTS)
    with opened(engine, spec) as backend:
        alone = compute_alone(backend, items)["embedding"]
        mixed = compute(backend, items[:MIXED])["embedding"]
    measured.note(KIND, ROW, engine, abs(alone - reference).max())
    assert abs(alone - reference).max() <= TOLERANCE
    assert abs(mixed - alone[:MIXED]).max() <= 1e-6


@pytest.mark.parametrize("engine", REAL_BACKENDS)
def test_a_text_that_comes_again_gets_the_same_vector(engine, minilm_folder):
    pytest.importorskip(engine)
    with InfinityPipeline(str(minilm_folder), engine=engine, dtype="float32", threads=1) as pipeline:
        vectors = pipeline.encode(["again", "something else in between", "again", "", " ", ""])
    assert abs(vectors[0] - vectors[2]).max() <= 1e-6
    assert abs(vectors[3] - vectors[5]).max() <= 1e-6
    assert abs(vectors[3] - vectors[4]).max() <= 1e-6  # the tokenizer sees nothing in white space


@pytest.fixture(scope="module")
def url(minilm_folder):
    with serve("--model-id", str(minilm_folder), "--dtype", "float32") as server:
        server.wait_until_ready()
        yield server.url


@pytest.mark.parametrize("encoding_format", ["float", "base64"])
def test_http_gives_the_vectors_of_sentence_transformers(url, reference, encoding_format):
    worst = 0.0
    with httpx.Client(base_url=url, timeout=300) as client:
        for start in range(0, COUNT, 100):
            body = {"input": TEXTS[start : start + 100], "encoding_format": encoding_format}
            data = client.post("/v1/embeddings", json=body).raise_for_status().json()["data"]
            assert [item["index"] for item in data] == list(range(100))
            values = [item["embedding"] for item in data]
            if encoding_format == "base64":
                values = [np.frombuffer(base64.b64decode(value), "<f4") for value in values]
            worst = max(worst, float(abs(np.array(values) - reference[start : start + 100]).max()))
    assert worst <= TOLERANCE
