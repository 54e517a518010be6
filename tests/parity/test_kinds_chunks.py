"""Token vectors of an embedder and late chunking, through the engine, against sentence-transformers' token states."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import tiny
import tiny_kinds
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.types import EmbedOptions, ScoreOptions, TextOptions

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
CHUNKS = ["lima is the capital of peru .", "it has many people .", "tea is hot"]


def asked(folder, use, **options):
    async def main():
        args = EngineArgs(model_name_or_path=str(folder), engine="openvino", dtype="float32", device="cpu", **options)
        async with AsyncEmbeddingEngine.from_args(args) as engine:
            return await use(engine)

    return asyncio.run(main())


def reference(folder):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu")


def states(model, text, prompt=None):
    return model.encode(text, prompt=prompt, output_value="token_embeddings", convert_to_numpy=False).numpy()


@pytest.mark.parametrize("kind", ["bert", "xlm_roberta", "modernbert"])
def test_token_vectors_equal_sentence_transformers(kind, tmp_path):
    folder = tiny.tiny(kind, tmp_path / kind)
    result = asked(folder, lambda engine: engine.multi_vector_result(CHUNKS))
    for mine, text in zip(result.vectors, CHUNKS, strict=True):
        np.testing.assert_allclose(mine, states(reference(folder), text), atol=TOLERANCE)


@pytest.mark.parametrize("kind", ["bert", "xlm_roberta", "modernbert"])
@pytest.mark.parametrize("prompt", [None, "passage : "])
def test_a_chunks_vector_is_the_mean_over_its_tokens_in_the_whole_document(kind, prompt, tmp_path):
    folder = tiny.tiny(kind, tmp_path / kind, dense=24)
    options = EmbedOptions(TextOptions(prompt=prompt))
    result = asked(folder, lambda engine: engine.chunks_result([CHUNKS, ["tea"]], options))
    model = reference(folder)
    hidden = states(model, " ".join(CHUNKS), prompt)
    dense, stop = model[2], None
    import torch

    for row, (start, end) in enumerate(result.spans[0]):
        assert stop in (None, start)
        stop = end
        pooled = torch.tensor(hidden[start:end].mean(axis=0, keepdims=True))
        vector = dense({"sentence_embedding": pooled})["sentence_embedding"][0].detach().numpy()
        np.testing.assert_allclose(result.vectors[row], vector / np.linalg.norm(vector), atol=TOLERANCE)
    assert stop == len(hidden) - 1, "all tokens but the last special one are in a chunk"
    assert [len(spans) for spans in result.spans] == [3, 1]
    counts = [len(model.tokenizer(chunk, add_special_tokens=False)["input_ids"]) for chunk in CHUNKS]
    if kind == "bert":
        assert [end - start for start, end in result.spans[0]] == counts


def test_a_late_interaction_model_reranks_by_maxsim(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = tiny_kinds.late_model(
        tmp_path / "late",
        "bert",
        prompts={"query": "[Q] ", "document": "[D] "},
        modules={"MultiVectorMask": {"skiplist_words": ["."]}},
        options={"query_expansion": {"strategy": "fixed", "attend": False, "length": 24}},
    )
    model = sentence_transformers.MultiVectorEncoder(str(folder), device="cpu")
    query = model.encode_query(["what is lima ?"])
    wanted = np.asarray(model.similarity(query, model.encode_document(CHUNKS)))[0]

    async def both(engine):
        raw = await engine.rerank_result("what is lima ?", CHUNKS, ScoreOptions(raw_scores=True))
        return raw, await engine.rerank_result("what is lima ?", CHUNKS)

    raw, relevance = asked(folder, both)
    np.testing.assert_allclose(raw.scores, wanted, atol=1e-4)
    np.testing.assert_allclose(relevance.scores, (1 + wanted / 24) / 2, atol=TOLERANCE)


def test_a_sparse_encoder_answers_through_the_engine(tmp_path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = tiny_kinds.splade(tmp_path / "sparse", "bert")
    wanted = sentence_transformers.SparseEncoder(str(folder), device="cpu").encode(
        CHUNKS, convert_to_sparse_tensor=False
    )
    result = asked(folder, lambda engine: engine.sparse_result(CHUNKS))
    for index, weights, row in zip(result.indices, result.weights, wanted.numpy(), strict=True):
        np.testing.assert_allclose(weights, row[index], atol=TOLERANCE)
        assert (np.delete(row, index) == 0).all()
