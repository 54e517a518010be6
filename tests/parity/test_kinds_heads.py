"""Heads beside the dense vector (BGE-M3): the formulas of its paper on transformers' token states, one text at a time."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import numpy as np
import pytest

import measured
import texts
import tiny_heads
from forward import REAL_BACKENDS, batches, opened
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.engine.heads import weigh_tokens
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.scheduler.runner import Runner

pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:::transformers")]
TOLERANCE = 1e-5
KIND = "several heads"  # of rows in the table of docs/models.md
CASES = {"bge-m3 dense": 0, "bge-m3 sparse": 1, "bge-m3 multi-vector": 2}
TEXTS = [*texts.sample(60)[::3], "tea tea hot tea", ""]


class Wanted(NamedTuple):
    """What the reference computes of one text."""

    dense: np.ndarray
    words: dict[int, float]
    vectors: np.ndarray


def computed(folder) -> list[Wanted]:
    """Dense: the first token. Sparse: the heaviest token of each word. Multi-vector: every token but the first."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    unused = set(tokenizer.convert_tokens_to_ids(list(tiny_heads.UNUSED)))
    weigh, turn = tiny_heads.layers(model.config.hidden_size).values()
    found = []
    for text in TEXTS:
        read = tokenizer(text, truncation=True, max_length=tokenizer.model_max_length, return_tensors="pt")
        with torch.no_grad():
            states = model(**read).last_hidden_state[0]
            weights = torch.relu(states @ weigh["weight"].T + weigh["bias"])[:, 0].tolist()
            vectors = torch.nn.functional.normalize(states[1:] @ turn["weight"].T + turn["bias"], dim=-1)
        words: dict[int, float] = {}
        for number, weight in zip(read["input_ids"][0].tolist(), weights, strict=True):
            if number not in unused and weight > 0:
                words[number] = max(weight, words.get(number, 0.0))
        dense = torch.nn.functional.normalize(states[0], dim=-1)
        found.append(Wanted(dense.numpy(), words, vectors.numpy()))
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    pytest.importorskip("transformers")
    folder = tiny_heads.bge_m3(tmp_path_factory.mktemp("heads"))
    return folder, computed(folder)


def errors(wanted: Wanted, dense, words, weights, vectors) -> tuple[float, float, float]:
    """Largest error of each kind of result of one text."""
    assert list(words) == sorted(wanted.words)
    assert vectors.shape == wanted.vectors.shape
    heavy = np.array([wanted.words[number] for number in words])
    parts = (dense - wanted.dense, weights - heavy, vectors - wanted.vectors)
    return tuple(float(abs(part).max(initial=0.0)) for part in parts)


@pytest.mark.parametrize("engine", REAL_BACKENDS)
def test_all_heads_equal_the_formulas_packed_and_alone(engine, made, tmp_path):
    pytest.importorskip(engine)
    folder, wanted = made
    assert sum(len(one.words) for one in wanted) > 100
    spec = read_spec(Checkpoint(folder, str(folder), "local folder"), allow_pickle=True)
    items = make_preprocessor(spec).texts(TEXTS)
    worst = np.zeros(3)
    with opened(engine, spec, cache_folder=tmp_path) as backend:
        assert backend.layout.segments_per_row is None
        runner = Runner(backend)
        for most in (64, 1):
            for batch in batches(backend, items, most):
                outputs = runner.run(batch)
                for row, (_, position) in enumerate(batch.entries):
                    ids = items[position].token_ids
                    words, weights = weigh_tokens(ids, outputs["token_weights"][row], spec.heads.unused_ids)
                    vectors = outputs["tokens"][row][1:]
                    one = errors(wanted[position], outputs["embedding"][row], words, weights, vectors)
                    worst = np.maximum(worst, one)
    for name, place in CASES.items():
        measured.note(KIND, name, engine, worst[place])
    assert (worst <= TOLERANCE).all(), worst


@pytest.mark.parametrize("engine", REAL_BACKENDS)
def test_one_pass_gives_what_was_asked_and_nothing_else_is_kept(engine, made, tmp_path):
    pytest.importorskip(engine)
    folder, wanted = made
    asked = [position for position, text in enumerate(TEXTS) if text.strip()][:6]
    inputs = [TEXTS[position] for position in asked]
    passes, kept = [], []

    async def main():
        args = EngineArgs(
            model_name_or_path=str(folder),
            engine=engine,
            dtype="float32",
            device="cpu",
            allow_pickle=True,
            cache_folder=str(tmp_path),
            max_batch_tokens=4096,
        )
        async with AsyncEmbeddingEngine.from_args(args) as serving:
            (backend,) = serving._runtime.backends
            start, compute = backend.start, serving._runtime.compute

            async def watched(*given):
                outputs = await compute(*given)
                kept.append(set(outputs))
                return outputs

            backend.start = lambda arrays: passes.append(1) or start(arrays)
            serving._runtime.compute = watched
            every = await serving.several_result(inputs, ["dense", "sparse", "multi_vector"])
            counted = len(passes)
            dense = await serving.embed_result(inputs)
            sparse = await serving.sparse_result(inputs)
            vectors = await serving.multi_vector_result(inputs)
            backend.start = start
            return serving.card, counted, every, (dense, sparse, vectors)

    card, counted, every, single = asyncio.run(main())
    assert counted == 1
    assert {str(task) for task in card.tasks} == {"embed", "sparse", "multi_vector"}
    assert card.extra["fidelity_min_cosine"] > 0.9999
    assert kept == [
        {"embedding", "norm", "token_weights", "tokens"},
        {"embedding", "norm"},
        {"token_weights"},
        {"tokens"},
    ]
    for dense, sparse, vectors in ((every.dense, every.sparse, every.multi_vector), single):
        for row, position in enumerate(asked):
            found = dense.vectors[row], sparse.indices[row], sparse.weights[row], vectors.vectors[row]
            assert max(errors(wanted[position], *found)) <= TOLERANCE
