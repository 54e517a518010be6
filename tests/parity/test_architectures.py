"""Tiny checkpoints of each family: vectors equal sentence-transformers, scores equal CrossEncoder and transformers."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import texts
import tiny
from forward import REAL_BACKENDS
from infinity_emb import InfinityPipeline

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
TEXTS = [*texts.sample(200)[::4], *(text for text in texts.ODD if "written" in text)]
ALONE = slice(0, None, 10)
QUERY = "the capital of peru 世界"
FAMILIES = ("bert", "roberta", "xlm_roberta", "camembert", "electra")
MORE_FAMILIES = ("distilbert", "mpnet", "albert", "modernbert", "deberta_v2")
CLASSIFIERS = ("bert", "roberta", "xlm_roberta", "deberta_v2", "modernbert")
RERANKERS = (*CLASSIFIERS, "electra", "distilbert", "mpnet", "albert")
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
# what is built → how, so that each module and each mode meets the reference once
EMBEDDERS: dict[str, tuple[str, dict]] = {
    **{family: (family, {"pooling": MODES}) for family in (*FAMILIES, *MORE_FAMILIES)},
    **{f"bert {mode}": ("bert", {"pooling": mode, "normalize": False}) for mode in MODES},
    "bert dense": ("bert", {"dense": 16}),
    "roberta dense of several modes": ("roberta", {"dense": 24, "pooling": ("cls", "mean"), "normalize": False}),
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


def build(kind, folder, **choices):
    if kind == "camembert":
        tiny.tiny("roberta", folder, **choices)
        tiny.edit_json(folder / "config.json", model_type="camembert", architectures=["CamembertModel"])
    else:
        tiny.tiny(kind, folder, **choices)


def opened(folder, engine):
    return InfinityPipeline(
        str(folder), engine=engine, dtype="float32", threads=1, cache_folder=str(folder / "cache"), batch_size=16
    )


def sentence_transformer(folder):
    import sentence_transformers

    return sentence_transformers.SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": "float32"})


def embed(folder):
    return sentence_transformer(folder).encode(TEXTS, batch_size=8, show_progress_bar=False)


def difference(ours, theirs):
    assert ours.shape == theirs.shape
    return float(abs(ours - theirs).max())


@pytest.mark.parametrize("name", EMBEDDERS)
def test_vectors_are_those_of_sentence_transformers(name, engine, made):
    kind, choices = EMBEDDERS[name]
    folder, expected = made(name, lambda folder: build(kind, folder, **choices), embed)
    with opened(folder, engine) as pipeline:
        mixed = pipeline.encode(TEXTS)
        alone = np.concatenate([pipeline.encode([text]) for text in TEXTS[ALONE]])
    assert difference(mixed, expected) <= TOLERANCE
    assert difference(alone, expected[ALONE]) <= TOLERANCE


def test_a_layer_norm_module_is_computed(engine, made):
    def build_it(folder):
        random = np.random.default_rng(3)
        build("bert", folder, normalize=False)
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
        "pooling": ("mean", "weightedmean"),
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
    folder, expected = made(name, lambda folder: build("bert", folder, **choices), ask)
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
        return model.predict(pairs, activation_fn=plain, **settings), model.predict(pairs, **settings)

    folder, (logits, scores) = made(f"reranker {kind}", lambda folder: build(kind, folder, labels=("relevant",)), ask)
    with opened(folder, engine) as pipeline:
        ranked = pipeline.rerank(QUERY, TEXTS)
        raw = pipeline.rerank(QUERY, TEXTS, raw_scores=True)
        alone = [pipeline.rerank(QUERY, [text], raw_scores=True)[0].relevance_score for text in TEXTS[ALONE]]
    assert difference(by_index(ranked), scores) <= TOLERANCE
    # logits may be several in size, and so is what rounding does to them
    np.testing.assert_allclose(by_index(raw), logits, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(alone, logits[ALONE], rtol=TOLERANCE, atol=TOLERANCE)
    assert scores_of(ranked) == sorted(scores_of(ranked), reverse=True)


def scores_of(rows):
    return [row.relevance_score for row in rows]


def by_index(rows):
    """Scores in the order of the documents."""
    return np.array(scores_of(sorted(rows, key=lambda row: row.index)), np.float32)


@pytest.mark.parametrize(
    ("kind", "multi_label"), [*((kind, False) for kind in CLASSIFIERS), ("bert", True), ("roberta", True)]
)
def test_class_scores_are_those_of_the_transformers_pipeline(kind, multi_label, engine, made):
    labels = ("sad", "glad", "mad")

    def ask(folder):
        import transformers

        pipe = transformers.pipeline("text-classification", model=str(folder), tokenizer=str(folder), device="cpu")
        answers = pipe(TEXTS, top_k=None, truncation=True, batch_size=8)
        return np.array(
            [[{row["label"]: row["score"] for row in answer}[label] for label in labels] for answer in answers]
        )

    folder, expected = made(
        f"classifier {kind} {multi_label}",
        lambda folder: build(kind, folder, labels=labels, multi_label=multi_label),
        ask,
    )
    with opened(folder, engine) as pipeline:
        answers = pipeline.classify(TEXTS)
    ours = np.array([[{row["label"]: row["score"] for row in answer}[label] for label in labels] for answer in answers])
    assert difference(ours, expected) <= TOLERANCE


@pytest.fixture(autouse=True)
def _collect():
    """What the reference libraries leave open is theirs, not the next test's."""
    yield
    gc.collect()
