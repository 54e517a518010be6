"""Language models that rerank: the very tokens of their authors' code, and the logits of transformers."""

from __future__ import annotations

import numpy as np
import pytest

import exact
import measured
import texts
import tiny
import tiny_kinds
from forward import REAL_BACKENDS, compute, opened
from infinity_emb.engine.vectors import sigmoid
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.models.spec.judge import RULES
from infinity_emb.types import Task, TextOptions

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
KIND, LOGIT_SCORE = "language model that reranks", "LogitScore"  # rows in the table of docs/models.md
LOGITS = f"{KIND}, logits"
QUERY = "what is the capital of peru ?"
DOCUMENTS = [text for text in texts.sample(60) if text][::5]
LONG = " ".join(["lima is the capital of peru ."] * 200)
# what is served → model_type, changes to its config
CASES = {
    "Qwen/Qwen3-Reranker-0.6B": ("qwen3", {"tie_word_embeddings": True}),
    "tuned/Qwen3-Reranker-4B-ours": ("qwen3", {"tie_word_embeddings": False}),
    "BAAI/bge-reranker-v2-gemma": ("gemma", {"tie_word_embeddings": True}),
    "mixedbread-ai/mxbai-rerank-base-v2": ("qwen2", {"tie_word_embeddings": True}),
    "mixedbread-ai/mxbai-rerank-large-v2": ("qwen2", {"tie_word_embeddings": False}),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folder and spec of each case, built once."""
    kept = {}

    def make(name):
        if name not in kept:
            folder = tiny_kinds.language_model(tmp_path_factory.mktemp("judge"), CASES[name][0], **CASES[name][1])
            kept[name] = folder, read_spec(Checkpoint(folder, name, "local folder"))
        return kept[name]

    return make


def check(row, engine, found, wanted, truth):
    """Relevance within 1e-5; logits, which are differences of larger numbers, within as much of the largest."""
    wanted = np.asarray(wanted, np.float32)
    measured.note(KIND, row, engine, abs(sigmoid(found) - sigmoid(wanted)).max())
    np.testing.assert_allclose(sigmoid(found), sigmoid(wanted), atol=TOLERANCE, rtol=0)
    np.testing.assert_allclose(found, wanted, atol=TOLERANCE * max(1.0, np.abs(wanted).max()), rtol=0)
    exact.check(LOGITS, row, engine, found, wanted, truth, size=np.abs(truth).max())


def qwen_ids(tokenizer, document, limit, instruction=None):
    """As on the model's page: the pair is one text that gives way to prefix and suffix."""
    question = RULES["qwen3-reranker"].question
    head, tail = (tokenizer.encode(text, add_special_tokens=False) for text in (question.begin, question.end[0]))
    body = f"<Instruct>: {instruction or question.instruction}\n<Query>: {QUERY}\n<Document>: {document}"
    room = limit - len(head) - len(tail)
    return (
        head
        + tokenizer(body, truncation="longest_first", max_length=room, add_special_tokens=False)["input_ids"]
        + tail
    )


def gemma_ids(tokenizer, document, limit, instruction=None):
    """As on the model's page, with the prompt inside the limit instead of behind it."""
    prompt = instruction or RULES["bge-reranker-v2-gemma"].question.instruction
    tail = plain(tokenizer, "\n") + plain(tokenizer, prompt)
    query = tokenizer(f"A: {QUERY}", add_special_tokens=False, max_length=limit * 3 // 4, truncation=True)["input_ids"]
    head = [tokenizer.bos_token_id, *query, *plain(tokenizer, "\n")]
    return head + plain(tokenizer, f"B: {document}")[: limit - len(head) - len(tail)] + tail


def mixedbread_ids(tokenizer, document, limit, instruction=None):
    """As in the package of its authors."""
    question = RULES["mxbai-rerank-v2"].question
    asked = f"instruction: {instruction}\nquery: {QUERY}" if instruction else f"query: {QUERY}"
    head = plain(tokenizer, question.begin) + plain(tokenizer, asked)[: limit * 3 // 4] + plain(tokenizer, "\n")
    tail = [number for text in question.end for number in plain(tokenizer, text)]
    return head + plain(tokenizer, f"document: {document}")[: limit - len(head) - len(tail)] + tail


def plain(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def wanted_ids(name, folder, documents, limit, **options):
    import transformers

    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    make = {"qwen3": qwen_ids, "gemma": gemma_ids, "qwen2": mixedbread_ids}[CASES[name][0]]
    return [make(tokenizer, document, limit, **options) for document in documents]


@pytest.mark.parametrize("name", CASES)
def test_a_judge_is_recognised_by_its_name_and_asked_as_its_authors_ask(name, made):
    folder, spec = made(name)
    assert (spec.task, spec.labels) == (Task.RERANK, ("LABEL_0",))
    for documents, options, changes in (
        ([*DOCUMENTS, LONG], TextOptions(), {}),
        ([LONG, "tea"], TextOptions(max_length=330), {}),
        (DOCUMENTS[:3], TextOptions(prompt="Find tea"), {"instruction": "Find tea"}),
    ):
        limit = min(options.max_length or spec.max_length, spec.max_length)
        features = make_preprocessor(spec).pairs(QUERY, documents, options)
        wanted = wanted_ids(name, folder, documents, limit, **changes)
        assert [item.token_ids.tolist() for item in features] == wanted
        assert all(item.cost == limit for item in features if item.truncated)
        assert all(item.truncated for item, document in zip(features, documents, strict=True) if document == LONG)
        assert not features[1].truncated


@pytest.fixture(scope="module")
def answers():
    """What transformers answers in float32 and in float64; one for all engines."""
    import torch
    import transformers

    kept = {}

    def ask(name, folder, spec, features):
        for dtype in (torch.float32, torch.float64):
            if (name, dtype) in kept:
                continue
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()
            found = kept[name, dtype] = []
            for item in features:
                with torch.no_grad():
                    logits = model(input_ids=torch.tensor(item.token_ids)[None]).logits[0, -1]
                no = 0.0 if spec.judge.false_id is None else logits[spec.judge.false_id]
                found.append(float(logits[spec.judge.true_id] - no))
        return kept[name, torch.float32], kept[name, torch.float64]

    return ask


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("name", CASES)
def test_scores_equal_the_logits_of_transformers(name, engine, made, answers):
    pytest.importorskip(engine)
    folder, spec = made(name)
    features = make_preprocessor(spec).pairs(QUERY, [*DOCUMENTS, LONG])
    wanted, truth = answers(name, folder, spec, features)
    assert np.std(wanted) > 0.05
    with opened(engine, spec) as backend:
        for most in (64, 1):
            check(name, engine, compute(backend, features, most)["logits"][:, 0], wanted, truth)


@pytest.mark.parametrize("engine", REAL_BACKENDS)
@pytest.mark.parametrize("false", [30, None])
def test_a_cross_encoder_with_a_logit_score_equals_sentence_transformers(false, engine, tmp_path):
    pytest.importorskip(engine)
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = tiny_kinds.language_model(tmp_path, "qwen3", tie_word_embeddings=True)
    tiny.write_modules(
        folder,
        [
            ("", "sentence_transformers.base.modules.transformer.Transformer"),
            ("1_LogitScore", "sentence_transformers.cross_encoder.modules.logit_score.LogitScore"),
        ],
    )
    tiny.write_json(folder / "1_LogitScore/config.json", {"true_token_id": 20, "false_token_id": false})
    tiny.write_json(folder / "sentence_bert_config.json", {"transformer_task": "text-generation"})
    tiny.write_json(folder / "config_sentence_transformers.json", {"model_type": "CrossEncoder"})
    reference = sentence_transformers.CrossEncoder(str(folder), device="cpu")
    import torch

    pairs = [(QUERY, document) for document in DOCUMENTS]
    plain = {"activation_fn": torch.nn.Identity(), "convert_to_tensor": True}
    wanted = reference.predict(pairs, **plain).numpy()
    truth = reference.double().predict(pairs, **plain).numpy()
    spec = read_spec(Checkpoint(folder, "ours", "local folder"))
    with opened(engine, spec) as backend:
        found = compute(backend, make_preprocessor(spec).pairs(QUERY, DOCUMENTS))["logits"][:, 0]
    check(LOGIT_SCORE, engine, found, wanted, truth)
