"""Tiny checkpoints of each family: vectors equal sentence-transformers, scores equal CrossEncoder and transformers."""

from __future__ import annotations

import dataclasses
import gc

import numpy as np
import pytest

import exact
import measured
import texts
import tiny
import tiny_embedders
from forward import REAL_BACKENDS, spec_of
from infinity_emb import InfinityPipeline
from infinity_emb.models.preprocess.choice import make_preprocessor

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
TEXTS = [*texts.sample(200)[::4], *(text for text in texts.ODD if "written" in text)]
ALONE = slice(0, None, 10)
QUERY = "the capital of peru 世界"
CLASSIFIERS = ("bert", "roberta", "xlm-roberta", "deberta-v2", "modernbert")
CLASS_ROWS = (*CLASSIFIERS, "bert multi-label", "roberta multi-label")
RERANKERS = (*CLASSIFIERS, "electra", "distilbert", "mpnet", "albert")
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
# kinds of rows in the table of docs/models.md
PADDED, EMBEDS, SCORES, CLASSES = "any padding", "embedder", "cross-encoder", "classifier"
SCORE_LOGITS, CLASS_LOGITS = f"{SCORES}, logits", f"{CLASSES}, logits"
# what is built → how, so that each module and each mode meets the reference once
EMBEDDERS: dict[str, tuple[str, dict]] = {
    **{f"bert {mode}": ("bert", {"pooling": mode, "normalize": False}) for mode in MODES},
    "bert dense": ("bert", {"dense": 16}),
    "roberta dense of several modes": ("roberta", {"dense": 24, "pooling": ("cls", "mean"), "normalize": False}),
    "bert dense beside itself": ("bert", {"dense": 32, "residual": True}),
    "bert dense beside a projection": ("bert", {"dense": 16, "residual": True, "normalize": False}),
    "bert float16": ("bert", {"dtype": "float16"}),
    "bert bfloat16": ("bert", {"dtype": "bfloat16"}),
    "roberta bfloat16": ("roberta", {"dtype": "bfloat16"}),
    "bert shards": ("bert", {"sharded": True}),
    "bert short": ("bert", {"max_seq_length": 20}),
}


@pytest.fixture(params=REAL_BACKENDS)
def engine(request):
    pytest.importorskip(request.param)
    pytest.importorskip("sentence_transformers")
    return request.param


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Builds each checkpoint once, and asks the reference once."""
    kept = {}

    def make(name, build, ask):
        if name not in kept:
            folder = tmp_path_factory.mktemp("model")
            build(folder)
            kept[name] = folder, ask(folder)
        return kept[name]

    return make


def opened(folder, engine):
    """The self-check takes its token states from openvino whatever the engine, so once is enough."""
    return InfinityPipeline(
        str(folder),
        engine=engine,
        dtype="float32",
        threads=1,
        cache_folder=str(folder / "cache"),
        batch_size=16,
        fidelity=0.9999 if engine == "openvino" else 0.0,
    )


def sentence_transformer(folder):
    import sentence_transformers

    return sentence_transformers.SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": "float32"})


def embed(folder):
    return sentence_transformer(folder).encode(TEXTS, batch_size=8, show_progress_bar=False)


def embed_padded(folder, model_type):
    """The reference's vectors, padded on the right and on the left."""
    model, found = sentence_transformer(folder), []
    for side in ("right", "left"):
        model.tokenizer.padding_side = side
        alone = side == "left" and model_type in tiny_embedders.COUNTS_PADDING
        found.append(model.encode(TEXTS, batch_size=1 if alone else 8, show_progress_bar=False))
    return found


def difference(ours, theirs):
    assert ours.shape == theirs.shape
    return float(abs(ours - theirs).max())


def test_the_texts_are_of_all_lengths():
    words = {len(text.split()) for text in TEXTS}
    assert len(TEXTS) >= 50
    assert {0, 1, 2} < words
    assert max(words) > 64  # more than the checkpoints read


@pytest.mark.parametrize("model_type", tiny_embedders.MODEL_TYPES)
def test_the_side_of_the_padding_changes_nothing(model_type, engine, made):
    """A text is read and computed alike whichever side the tokenizer pads on, as the reference does in both cases."""

    def build(folder):
        tiny_embedders.embedder(model_type, folder, pooling=MODES)
        tiny_embedders.pad(folder, "left")

    folder, expected = made(f"padded {model_type}", build, lambda folder: embed_padded(folder, model_type))
    with opened(folder, engine) as pipeline:
        mixed = pipeline.encode(TEXTS)
        alone = np.concatenate([pipeline.encode([text]) for text in TEXTS[ALONE]])
    errors = [difference(mixed, side) for side in expected] + [difference(alone, side[ALONE]) for side in expected]
    measured.note(PADDED, model_type, engine, max(errors))
    assert max(errors) <= TOLERANCE, errors


@pytest.mark.parametrize("model_type", tiny_embedders.MODEL_TYPES)
def test_a_tokenizer_that_pads_on_the_other_side_is_read_alike(model_type, tmp_path):
    pytest.importorskip("torch")
    folder = tiny_embedders.embedder(model_type, tmp_path / "model", pooling=MODES)
    read = {}
    for side in ("right", "left"):
        tiny_embedders.pad(folder, side)
        spec = spec_of(folder)
        assert spec.padding_side == side
        read[side] = dataclasses.replace(spec, padding_side=""), make_preprocessor(spec).texts(TEXTS)
    assert read["left"][0] == read["right"][0]
    for left, right in zip(read["left"][1], read["right"][1], strict=True):
        assert left.token_ids.tolist() == right.token_ids.tolist()


@pytest.mark.parametrize("name", EMBEDDERS)
def test_vectors_are_those_of_sentence_transformers(name, engine, made):
    kind, choices = EMBEDDERS[name]
    folder, expected = made(name, lambda folder: tiny_embedders.embedder(kind, folder, **choices), embed)
    with opened(folder, engine) as pipeline:
        mixed = pipeline.encode(TEXTS)
        alone = np.concatenate([pipeline.encode([text]) for text in TEXTS[ALONE]])
    error = max(difference(mixed, expected), difference(alone, expected[ALONE]))
    measured.note(EMBEDS, name, engine, error)
    assert error <= TOLERANCE


def test_a_layer_norm_module_is_computed(engine, made):
    def build_it(folder):
        random = np.random.default_rng(3)
        tiny.tiny("bert", folder, normalize=False)
        tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_LayerNorm", "LayerNorm")])
        tiny.write_json(folder / "2_LayerNorm/config.json", {"dimension": tiny.HIDDEN})
        shape = (tiny.HIDDEN,)
        tensors = {"norm.weight": random.normal(1, 0.3, shape), "norm.bias": random.normal(0, 0.3, shape)}
        tiny.save_tensors(folder / "2_LayerNorm", tensors, "float32")

    folder, expected = made("layer norm", build_it, embed)
    with opened(folder, engine) as pipeline:
        assert difference(pipeline.encode(TEXTS), expected) <= TOLERANCE


@pytest.mark.parametrize("include_prompt", [True, False])
def test_prompts_count_as_the_repository_says(include_prompt, engine, made):
    choices = {
        "prompts": {"query": "search for: ", "document": "text: "},
        "default_prompt_name": "document",
        "include_prompt": include_prompt,
        "pooling": MODES,
    }

    def ask(folder):
        model = sentence_transformer(folder)
        settings = {"show_progress_bar": False, "batch_size": 8}
        return {
            "default": model.encode(TEXTS, **settings),
            "query": model.encode(TEXTS, prompt_name="query", **settings),
            "own": model.encode(TEXTS, prompt="my own words: ", **settings),
        }

    name = f"prompts {include_prompt}"
    folder, expected = made(name, lambda folder: tiny.tiny("bert", folder, **choices), ask)
    with opened(folder, engine) as pipeline:
        assert difference(pipeline.encode(TEXTS), expected["default"]) <= TOLERANCE
        assert difference(pipeline.encode(TEXTS, prompt_name="query"), expected["query"]) <= TOLERANCE
        assert difference(pipeline.encode(TEXTS, prompt="my own words: "), expected["own"]) <= TOLERANCE


@pytest.mark.parametrize("kind", RERANKERS)
def test_logits_and_scores_of_pairs_are_those_of_the_cross_encoder(kind, engine, made):
    def ask(folder):
        import sentence_transformers
        import torch

        model = sentence_transformers.CrossEncoder(str(folder), device="cpu")
        plain = torch.nn.Identity()
        settings = {"show_progress_bar": False, "batch_size": 8}
        pairs = [(QUERY, text) for text in TEXTS]
        logits, scores = model.predict(pairs, activation_fn=plain, **settings), model.predict(pairs, **settings)
        truth = model.double().predict(pairs, activation_fn=plain, convert_to_tensor=True, **settings)
        return logits, scores, truth.numpy()

    folder, (logits, scores, truth) = made(
        f"reranker {kind}", lambda folder: tiny_embedders.embedder(kind, folder, labels=("relevant",)), ask
    )
    with opened(folder, engine) as pipeline:
        ranked = pipeline.rerank(QUERY, TEXTS)
        raw = pipeline.rerank(QUERY, TEXTS, raw_scores=True)
        alone = [pipeline.rerank(QUERY, [text], raw_scores=True)[0].relevance_score for text in TEXTS[ALONE]]
    measured.note(SCORES, kind, engine, difference(by_index(ranked), scores))
    assert difference(by_index(ranked), scores) <= TOLERANCE
    # logits may be several in size, and so is what rounding does to them
    np.testing.assert_allclose(by_index(raw), logits, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(alone, logits[ALONE], rtol=TOLERANCE, atol=TOLERANCE)
    exact.check(SCORE_LOGITS, kind, engine, by_index(raw), logits, truth)
    exact.check(SCORE_LOGITS, kind, engine, np.array(alone, np.float32), logits[ALONE], truth[ALONE])
    assert scores_of(ranked) == sorted(scores_of(ranked), reverse=True)


def scores_of(rows):
    return [row.relevance_score for row in rows]


def by_index(rows):
    """Scores in the order of the documents."""
    return np.array(scores_of(sorted(rows, key=lambda row: row.index)), np.float32)


@pytest.mark.parametrize("row", CLASS_ROWS)
def test_class_scores_are_those_of_the_transformers_pipeline(row, engine, made):
    kind, _, multi_label = row.partition(" ")
    labels = ("sad", "glad", "mad")

    def ask(folder):
        import transformers

        kept = {"model": str(folder), "tokenizer": str(folder), "device": "cpu"}
        settings = {"top_k": None, "truncation": True, "batch_size": 8}
        single, double = (
            transformers.pipeline("text-classification", dtype=dtype, **kept) for dtype in ("float32", "float64")
        )
        plain = settings | {"function_to_apply": "none"}
        answers = single(TEXTS, **settings), single(TEXTS, **plain), double(TEXTS, **plain)
        return [by_label(answer, labels) for answer in answers]

    folder, (expected, logits, truth) = made(
        f"classifier {row}",
        lambda folder: tiny_embedders.embedder(kind, folder, labels=labels, multi_label=bool(multi_label)),
        ask,
    )
    with opened(folder, engine) as pipeline:
        answers = pipeline.classify(TEXTS)
        raw = pipeline.classify(TEXTS, raw_scores=True)
    ours = by_label(answers, labels)
    measured.note(CLASSES, row, engine, difference(ours, expected))
    assert difference(ours, expected) <= TOLERANCE
    if not multi_label:  # which changes what follows the logits
        exact.check(CLASS_LOGITS, row, engine, by_label(raw, labels), logits, truth)


def by_label(answers, labels):
    """Scores `[texts, labels]`."""
    return np.array([[{row["label"]: row["score"] for row in answer}[label] for label in labels] for answer in answers])


@pytest.fixture(scope="module")
def _settled():
    """The libraries' own objects stay; looking at them after every test would take half a second each time."""
    pytest.importorskip("sentence_transformers")
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _collect(_settled):
    """What the reference libraries leave open is theirs, not the next test's."""
    yield
    gc.collect()
