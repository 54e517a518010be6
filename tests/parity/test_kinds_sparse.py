"""Sparse encoders: the weights of SparseEncoder, for each family, pooling and activation."""

from __future__ import annotations

import numpy as np
import pytest

import exact
import measured
import texts
import tiny_kinds
from forward import REAL_BACKENDS, batches, opened, spec_of
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.scheduler.runner import Runner
from infinity_emb.types import Task

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
KIND, WEIGHTS = "sparse encoder", "sparse encoder, weights"  # of rows in the table of docs/models.md
TEXTS = texts.sample(60)[::4]
# what is built → family, old spelling, pooling
CASES = {
    "bert": ("bert", True, {"pooling_strategy": "max"}),
    "bert sum": ("bert", True, {"pooling_strategy": "sum", "word_embedding_dimension": None}),
    "bert, the largest": ("bert", True, {"most": 16}),
    "distilbert log twice": ("distilbert", False, {"activation_function": "log1p_relu"}),
    "roberta": ("roberta", False, {"pooling_strategy": "max", "activation_function": "relu"}),
    "modernbert": ("modernbert", False, {}),
    "mpnet sum log twice": ("mpnet", False, {"pooling_strategy": "sum", "activation_function": "log1p_relu"}),
    "xlm-roberta": ("xlm-roberta", True, {}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder, and the reference's weights in float32 and in float64, of each case."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    kept = {}

    def make(name):
        if name not in kept:
            family, old, pooling = CASES[name]
            folder = tiny_kinds.splade(tmp_path_factory.mktemp("sparse"), family, old=old, **pooling)
            reference = sentence_transformers.SparseEncoder(str(folder), device="cpu")
            single = reference.encode(TEXTS, convert_to_sparse_tensor=False).numpy()
            kept[name] = folder, single, reference.double().encode(TEXTS, convert_to_sparse_tensor=False).numpy()
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
    folder, wanted, truth = made(case)
    assert (wanted > 0).mean() > 0.05
    assert wanted.std(axis=0).mean() > 0.01
    spec = spec_of(folder)
    assert spec.task is Task.SPARSE
    with opened(engine, spec) as backend:
        for most in (64, 1):
            found = weights(backend, spec, most)
            measured.note(KIND, case, engine, (abs(found - wanted) / np.maximum(1, wanted)).max())
            np.testing.assert_allclose(found, wanted, atol=TOLERANCE, rtol=TOLERANCE)
            exact.check(WEIGHTS, case, engine, found, wanted, truth)


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """A model whose queries are looked up in a table, as sentence-transformers saves it."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SparseStaticEmbedding, SpladePooling

    body = tiny_kinds.masked_model(tmp_path_factory.mktemp("body"), "bert")
    documents = MLMTransformer(str(body))
    table = torch.rand(documents.tokenizer.vocab_size, generator=torch.Generator().manual_seed(3))
    table[::7] = 0
    router = Router.for_query_document(
        query_modules=[SparseStaticEmbedding(documents.tokenizer, weight=table, frozen=True)],
        document_modules=[documents, SpladePooling("max")],
    )
    reference = sentence_transformers.SparseEncoder(modules=[router], device="cpu")
    folder = tmp_path_factory.mktemp("routed")
    reference.save_pretrained(str(folder))
    return folder, reference


def test_queries_of_an_inference_free_encoder_are_looked_up_and_documents_computed(routed):
    import asyncio

    from infinity_emb import AsyncEmbeddingEngine, EngineArgs
    from infinity_emb.types import EmbedOptions, TextOptions

    folder, reference = routed
    inputs = [text for text in TEXTS if text.strip() and len(text) < 150]

    async def main():
        args = EngineArgs(model_name_or_path=str(folder), engine="openvino", dtype="float32", device="cpu")
        async with AsyncEmbeddingEngine.from_args(args) as engine:
            asked = await engine.sparse_result(inputs, EmbedOptions(TextOptions(input_type="query")))
            return asked, await engine.sparse_result(inputs)

    for result, wanted in zip(
        asyncio.run(main()),
        (reference.encode_query(inputs), reference.encode_document(inputs)),
        strict=True,
    ):
        for index, found, row in zip(result.indices, result.weights, wanted.to_dense().numpy(), strict=True):
            np.testing.assert_allclose(found, row[index], atol=TOLERANCE)
            assert (np.delete(row, index) == 0).all()
