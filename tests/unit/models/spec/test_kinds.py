"""Language models that rerank, sparse encoders and late interaction models: what is read, and what is refused."""

from __future__ import annotations

import pytest

import tiny
from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.late import Expansion
from infinity_emb.models.spec.model import DenseSpec, NormalizeSpec
from infinity_emb.types import Task

SPLADE = "sentence_transformers.sparse_encoder.models"
LOGIT_SCORE = "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"
FAMILY = "config_sentence_transformers.json"


def read(folder, name=None, **options):
    return read_spec(Checkpoint(folder, name or str(folder), "local folder"), **options)


def refused(folder, word, param, **options):
    with pytest.raises(CheckpointError, match=word) as caught:
        read(folder, **options)
    assert caught.value.param == param


@pytest.fixture
def causal(tmp_path):
    folder = tiny.tiny_bert(tmp_path / "model", modules=False)
    tiny.edit_json(folder / "config.json", architectures=["Qwen3ForCausalLM"], model_type="qwen3")
    return folder


@pytest.fixture
def judge(causal):
    """A cross-encoder of Transformer and LogitScore."""
    tiny.write_modules(causal, [("", "Transformer"), ("1_Score", LOGIT_SCORE)])
    tiny.write_json(causal / "1_Score/config.json", {"true_token_id": 7, "false_token_id": 8})
    tiny.write_json(causal / "sentence_bert_config.json", {"transformer_task": "text-generation"})
    tiny.write_json(causal / FAMILY, {"model_type": "CrossEncoder"})
    return causal


@pytest.fixture
def splade(tmp_path):
    folder = tiny.tiny_bert(tmp_path / "model", modules=False)
    tiny.edit_json(folder / "config.json", architectures=["BertForMaskedLM"])
    tiny.write_modules(folder, [("", f"{SPLADE}.MLMTransformer"), ("1_Pooling", f"{SPLADE}.SpladePooling")])
    tiny.write_json(folder / "1_Pooling/config.json", {"pooling_strategy": "sum", "activation_function": "log1p_relu"})
    tiny.write_json(folder / FAMILY, {"model_type": "SparseEncoder"})
    return folder


@pytest.fixture
def late(tmp_path):
    folder = tiny.tiny_bert(tmp_path / "model", modules=False)
    tiny.write_modules(folder, [("", "Transformer"), ("1_Dense", "Dense"), ("2_Normalize", "Normalize")])
    tiny.write_json(
        folder / "1_Dense/config.json",
        {"in_features": 32, "out_features": 8, "bias": False, "activation_function": None},
    )
    import numpy as np

    tiny.save_tensors(folder / "1_Dense", {"linear.weight": np.ones((8, 32), np.float32)}, "float32")
    tiny.write_json(folder / "2_Normalize/config.json", {"module_input_name": "token_embeddings"})
    tiny.write_json(folder / "sentence_bert_config.json", {"max_seq_length": 40})
    tiny.write_json(folder / FAMILY, {"model_type": "MultiVectorEncoder", "similarity_fn_name": "meanmaxsim"})
    return folder


def test_a_language_model_of_a_known_name_must_have_the_words_it_answers_with(causal):
    assert read(causal).task is Task.EMBED
    with pytest.raises(CheckpointError, match="'yes' is missing") as caught:
        read(causal, "Qwen/Qwen3-Reranker-8B")
    assert caught.value.param == "tokenizer.json"


def test_a_language_model_of_no_known_name_is_not_taken_for_a_reranker(causal):
    with pytest.raises(CheckpointError, match="qwen3-reranker, bge-reranker-v2-gemma, mxbai-rerank-v2"):
        read(causal, task=Task.RERANK)


def test_a_logit_score_is_read_with_its_tokens(judge):
    spec = read(judge)
    assert (spec.task, spec.judge.true_id, spec.judge.false_id, spec.judge.question) == (Task.RERANK, 7, 8, None)


def test_what_a_logit_score_cannot_be_is_refused(judge):
    tiny.write_json(judge / "1_Score/config.json", {"true_token_id": 10**6})
    refused(judge, "outside the vocabulary", "1_Score/config.json:true_token_id")
    tiny.write_json(judge / "1_Score/config.json", {"true_token_id": 7, "module_input_name": "scores"})
    refused(judge, "'causal_logits'", "1_Score/config.json:module_input_name")
    (judge / "chat_template.jinja").write_text("{{ messages }}")
    refused(judge, "chat template", "chat_template.jinja:chat_template")
    tiny.write_modules(judge, [("", "Transformer"), ("1_Score", LOGIT_SCORE), ("2_Dense", "Dense")])
    refused(judge, "LogitScore, Dense is not", "modules.json")


def test_a_sparse_encoder_is_read_with_its_pooling(splade):
    spec = read(splade)
    assert (spec.task, spec.sparse.total, spec.sparse.log_twice) == (Task.SPARSE, True, True)
    assert spec.dim == spec.sparse.vocabulary == spec.config["vocab_size"]


def test_a_masked_language_model_is_sparse_by_name_or_by_task_only(splade):
    for name in ("modules.json", FAMILY):
        (splade / name).unlink()
    assert read(splade, "bert-base").task is Task.EMBED
    assert read(splade, "naver/SPLADE-v3").task is Task.SPARSE
    assert read(splade, "bert-base", task=Task.SPARSE).sparse.total is False


def test_what_a_sparse_encoder_cannot_be_is_refused(splade):
    refused(splade, "cannot do the task embed", f"{FAMILY}:model_type", task=Task.EMBED)
    tiny.edit_json(splade / FAMILY, max_active_dims=0)
    refused(splade, "at least 1", f"{FAMILY}:max_active_dims")
    tiny.edit_json(splade / FAMILY, max_active_dims=16)
    assert read(splade).sparse.most == 16
    tiny.edit_json(splade / "1_Pooling/config.json", pooling_strategy="mean")
    refused(splade, "Supported: max, sum", "1_Pooling/config.json:pooling_strategy")
    tiny.edit_json(splade / "1_Pooling/config.json", pooling_strategy="max", word_embedding_dimension=9)
    refused(splade, "size of the vocabulary", "1_Pooling/config.json:word_embedding_dimension")
    tiny.write_modules(splade, [("", f"{SPLADE}.MLMTransformer"), ("1_Pooling", "Pooling")])
    refused(splade, "then SpladePooling", "modules.json")
    tiny.edit_json(splade / "config.json", architectures=["BertModel"])
    refused(splade, "masked language model", "config.json:architectures")


def test_a_late_interaction_model_is_read_with_its_lengths_and_filling(late):
    tiny.edit_json(
        late / "sentence_bert_config.json",
        query_expansion={"strategy": "fixed", "length": 24},
        document_length=50,
    )
    spec = read(late)
    assert [type(module) for module in spec.modules] == [DenseSpec, NormalizeSpec]
    assert (spec.task, spec.dim, spec.similarity_fn, spec.max_length) == (Task.MULTI_VECTOR, 8, "meanmaxsim", 50)
    assert spec.late.expansion == Expansion(24, fixed=True, attend=False, token_id=4)
    assert (spec.late.query_length, spec.late.document_length, spec.late.mean) == (24, 50, True)


def test_what_a_late_interaction_model_cannot_be_is_refused(late):
    refused(late, "cannot do the task embed", f"{FAMILY}:model_type", task=Task.EMBED)
    tiny.edit_json(late / "sentence_bert_config.json", query_expansion={"strategy": "twice", "length": 24})
    refused(late, "Supported: fixed, min", "sentence_bert_config.json:strategy")
    tiny.edit_json(late / "sentence_bert_config.json", query_expansion={"strategy": "min"})
    refused(late, "missing", "sentence_bert_config.json:length")
    tiny.edit_json(late / "sentence_bert_config.json", query_expansion=...)
    chain = [("", "Transformer"), ("1_Dense", "Dense"), ("2_Pooling", "Pooling")]
    tiny.write_modules(late, chain)
    refused(late, "Pooling in a late interaction model", "modules.json")
    chain[2] = ("2_Mask", "sentence_transformers.multi_vector_encoder.modules.MultiVectorMask")
    tiny.write_modules(late, chain)
    tiny.write_json(late / "2_Mask/config.json", {"keep_only_token_ids": [3]})
    refused(late, "keeping only some", "2_Mask/config.json:keep_only_token_ids")


def test_an_embedder_may_not_have_the_options_of_late_interaction(late):
    tiny.edit_json(late / FAMILY, model_type=..., similarity_fn_name="cosine")
    tiny.edit_json(late / "sentence_bert_config.json", document_length=30)
    refused(late, "changes what the model reads", "sentence_bert_config.json:document_length")


def test_stanfords_layout_needs_its_projection(late):
    for name in ("modules.json", FAMILY, "sentence_bert_config.json"):
        (late / name).unlink()
    tiny.edit_json(late / "config.json", architectures=["HF_ColBERT"])
    refused(late, "projection linear.weight", "linear.weight")
