"""The contract of one engine, with the model that costs nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import random
import threading
import time
import weakref

import numpy as np
import pytest

from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.errors import (
    CapabilityError,
    DeadlineExceededError,
    DimensionsError,
    InputTooLargeError,
    InvalidInputError,
    NotReadyError,
    OverloadedError,
)
from infinity_emb.measures import StageTimes
from infinity_emb.types import Call, EmbedOptions, RerankReturnType, ScoreOptions
from stub_backends import WAIT_S, Death


def dummy(**options):
    return EngineArgs(**{"model_name_or_path": "some/dummy", "engine": "dummy", **options})


def run_with(args, use):
    """Start an engine, await `use(engine)`, stop it."""

    async def main():
        async with AsyncEmbeddingEngine.from_args(args) as engine:
            return await use(engine)

    return asyncio.run(main())


# Engines that fixtures of other modules keep running in this process are none of ours.
_others: set[threading.Thread] = set()


@pytest.fixture(autouse=True)
def _remember_the_threads_of_others():
    _others.clear()
    _others.update(threading.enumerate())


def engine_threads():
    names = ("infinity-", "asyncio_")
    return [thread for thread in threading.enumerate() if thread.name.startswith(names) and thread not in _others]


def test_embed_returns_one_vector_a_text_and_the_tokens():
    vectors, usage = run_with(dummy(), lambda engine: engine.embed(sentences=["a", "bcd"]))
    assert [vector.shape for vector in vectors] == [(384,), (384,)]
    assert all(isinstance(vector, np.ndarray) and vector.dtype == np.float32 for vector in vectors)
    assert usage == 2 + 4  # a byte each and one leading token


def test_usage_of_a_request_is_the_sum_of_its_texts():
    async def use(engine):
        return [(await engine.embed(sentences=texts))[1] for texts in (["hi"], ["some more"], ["hi", "some more"])]

    one, other, both = run_with(dummy(), use)
    assert both == one + other


def test_an_empty_list_gives_an_empty_answer():
    assert run_with(dummy(), lambda engine: engine.embed(sentences=[])) == ([], 0)
    assert run_with(dummy(task="rerank"), lambda engine: engine.rerank(query="q", docs=[])) == ([], 0)
    assert run_with(dummy(task="classify"), lambda engine: engine.classify(sentences=[])) == ([], 0)


def test_an_empty_list_is_an_error_that_says_so_on_the_wide_face():
    with pytest.raises(InvalidInputError, match="empty"):
        run_with(dummy(), lambda engine: engine.embed_result([]))


@pytest.mark.parametrize("texts", ["one text", b"bytes"])
def test_one_text_instead_of_a_list_is_not_read_letter_by_letter(texts):
    with pytest.raises(InvalidInputError, match="list"):
        run_with(dummy(), lambda engine: engine.embed(sentences=texts))


def test_rerank_sorts_by_relevance_and_keeps_the_positions():
    docs = [f"document {number}" for number in range(20)]

    async def use(engine):
        ranked, usage = await engine.rerank(query="q", docs=docs)
        scores = (await engine.rerank_result("q", docs)).scores
        return ranked, usage, scores

    ranked, usage, scores = run_with(dummy(task="rerank"), use)
    assert all(isinstance(row, RerankReturnType) for row in ranked)
    assert sorted(row.index for row in ranked) == list(range(20))
    assert [row.relevance_score for row in ranked] == sorted((row.relevance_score for row in ranked), reverse=True)
    for row in ranked:
        assert row.document == docs[row.index]
        assert row.relevance_score == scores[row.index]
        assert 0.0 <= row.relevance_score <= 1.0
    assert usage == sum(len(f"q\0{text}") + 1 for text in docs)


@pytest.mark.parametrize(("top_n", "kept"), [(None, 3), (3, 3), (99, 3), (2, 2), (1, 1), (0, 3), (-1, 3)])
def test_top_n_of_nothing_or_less_keeps_all(top_n, kept):
    docs = ["a", "b", "c"]
    ranked, _ = run_with(dummy(task="rerank"), lambda engine: engine.rerank(query="q", docs=docs, top_n=top_n))
    assert len(ranked) == kept


def test_raw_scores_are_the_logits_and_scores_their_sigmoid_once():
    async def use(engine):
        raw = await engine.rerank_result("q", ["a", "b"], ScoreOptions(raw_scores=True))
        return raw.scores, (await engine.rerank_result("q", ["a", "b"])).scores

    raw, scores = run_with(dummy(task="rerank"), use)
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-raw)), rtol=1e-6)


def test_classify_gives_every_label_best_first():
    answers, usage = run_with(dummy(task="classify"), lambda engine: engine.classify(sentences=["a", "bc"]))
    assert usage == 5
    for answer in answers:
        assert {element["label"] for element in answer} == {"LABEL_0", "LABEL_1", "LABEL_2"}
        scores = [element["score"] for element in answer]
        assert scores == sorted(scores, reverse=True)
        assert sum(scores) == pytest.approx(1.0, abs=1e-5)


def test_results_hold_python_numbers_that_json_can_write():
    ranked, _ = run_with(dummy(task="rerank"), lambda engine: engine.rerank(query="q", docs=["a"]))
    assert json.loads(json.dumps(ranked[0]._asdict())) == ranked[0]._asdict()
    answers, _ = run_with(dummy(task="classify"), lambda engine: engine.classify(sentences=["a"]))
    assert json.loads(json.dumps(answers)) == answers
    vectors, usage = run_with(dummy(), lambda engine: engine.embed(sentences=["a"]))
    assert len(json.loads(json.dumps([vector.tolist() for vector in vectors]))[0]) == 384
    assert type(usage) is int


@pytest.mark.parametrize(
    ("task", "call"),
    [
        ("rerank", lambda engine: engine.embed(sentences=["a"])),
        ("embed", lambda engine: engine.rerank(query="q", docs=["a"])),
        ("embed", lambda engine: engine.classify(sentences=["a"])),
        ("embed", lambda engine: engine.image_embed(images=[b""])),
        ("embed", lambda engine: engine.audio_embed(audios=[b""])),
    ],
)
def test_a_task_the_model_cannot_do_names_what_it_can(task, call):
    with pytest.raises(CapabilityError, match=f"offers: {task}"):
        run_with(dummy(task=task), call)


@pytest.mark.parametrize("dimensions", [385, -1])
def test_dimensions_out_of_range_name_the_range(dimensions):
    with pytest.raises(DimensionsError, match="between 1 and 384"):
        run_with(dummy(), lambda engine: engine.embed(sentences=["a"], matryoshka_dim=dimensions))


@pytest.mark.parametrize(("dimensions", "length"), [(None, 384), (384, 384), (64, 64), (1, 1)])
def test_dimensions_are_the_first_numbers_made_unit_again(dimensions, length):
    async def use(engine):
        full, _ = await engine.embed(sentences=["some text"])
        cut, _ = await engine.embed(sentences=["some text"], matryoshka_dim=dimensions)
        return full[0], cut[0]

    full, cut = run_with(dummy(), use)
    assert cut.shape == (length,)
    np.testing.assert_allclose(cut, full[:length] / np.linalg.norm(full[:length]), atol=1e-6)
    assert np.linalg.norm(cut) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "dtype", "length"),
    [
        ("float32", "float32", 384),
        ("int8", "int8", 384),
        ("uint8", "uint8", 384),
        ("binary", "int8", 48),
        ("ubinary", "uint8", 48),
    ],
)
def test_embedding_dtype_of_the_arguments_is_that_of_the_vectors(name, dtype, length):
    vectors, _ = run_with(dummy(embedding_dtype=name), lambda engine: engine.embed(sentences=["a"]))
    assert vectors[0].dtype == dtype
    assert vectors[0].shape == (length,)


def test_more_inputs_than_allowed_are_refused_with_the_option_to_raise():
    with pytest.raises(InputTooLargeError, match="max-client-batch-size"):
        run_with(dummy(max_client_batch_size=4), lambda engine: engine.embed(sentences=["a"] * 5))


def test_options_in_place_of_engine_args_work_with_a_warning_as_langchain_gives_them():
    with pytest.warns(DeprecationWarning, match="from_args"):
        engine = AsyncEmbeddingEngine(model_name_or_path="some/dummy", engine="dummy", device="cpu", revision=None)

    async def main():
        assert not engine.running
        async with engine:
            assert engine.running
            return await engine.embed(["a"])

    assert len(asyncio.run(main())[0]) == 1
    with pytest.raises(TypeError, match="not both"):
        AsyncEmbeddingEngine(dummy(), batch_size=8)


def test_before_start_and_after_stop_every_task_raises_a_value_error():
    async def main():
        engine = AsyncEmbeddingEngine.from_args(dummy())
        assert not engine.is_running
        assert not engine.is_healthy
        with pytest.raises(ValueError, match="not running") as caught:
            await engine.embed(sentences=["a"])
        assert isinstance(caught.value, NotReadyError)
        await engine.astart()
        assert engine.is_running
        assert engine.is_healthy
        await engine.astop()
        assert not engine.is_running
        with pytest.raises(ValueError, match="not running"):
            await engine.embed(sentences=["a"])

    asyncio.run(main())


def test_start_and_stop_twice_and_again_work_and_leave_no_threads():
    async def main():
        engine = AsyncEmbeddingEngine.from_args(dummy())
        await engine.astop()
        await asyncio.gather(engine.astart(), engine.astart(), engine.astart())
        await engine.astart()
        first, _ = await engine.embed(sentences=["a"])
        await asyncio.gather(engine.astop(), engine.astop())
        await engine.astop()
        async with engine:
            second, _ = await engine.embed(sentences=["a"])
        async with engine as itself:
            assert itself is engine
        return first[0], second[0]

    first, second = asyncio.run(main())
    np.testing.assert_array_equal(first, second)
    assert not engine_threads()


def test_one_engine_serves_one_event_loop_after_another():
    engine = AsyncEmbeddingEngine.from_args(dummy())

    async def once():
        await asyncio.gather(engine.astart(), engine.astart())
        vectors, _ = await engine.embed(sentences=["a"])
        await asyncio.gather(engine.astop(), engine.astop())
        return vectors[0]

    np.testing.assert_array_equal(asyncio.run(once()), asyncio.run(once()))


def test_an_engine_that_is_dropped_without_stop_ends_its_threads():
    engine = AsyncEmbeddingEngine.from_args(dummy())
    engine.start()
    gone = weakref.ref(engine)
    assert engine_threads()
    del engine
    gc.collect()
    assert gone() is None
    assert not [thread for thread in engine_threads() if "preprocess" not in thread.name]


def test_a_failed_warm_up_leaves_no_threads(monkeypatch):
    engine = AsyncEmbeddingEngine.from_args(dummy())

    def broken(_):
        raise RuntimeError("no device")

    monkeypatch.setattr(engine._model.backends[0], "start", broken)
    with pytest.raises(RuntimeError, match="no device"):
        engine.start()
    assert not engine.is_running
    assert not engine_threads()


def test_stop_answers_everything_that_was_accepted():
    async def main():
        engine = AsyncEmbeddingEngine.from_args(dummy())
        await engine.astart()
        # the small ones are accepted in their first step, the others are still being read when the engine stops
        tasks = [asyncio.create_task(engine.embed(sentences=["x" * (n % 50)] * (5 + n % 2 * 50))) for n in range(200)]
        await asyncio.sleep(0)
        await engine.astop()
        return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), WAIT_S)

    answers = asyncio.run(main())
    assert all(isinstance(answer, (tuple, NotReadyError)) for answer in answers)
    assert all(isinstance(answer, tuple) for answer in answers[::2])


class Held:
    """Keeps the dummy backend from computing until `release`."""

    def __init__(self, engine):
        self._gate, self.entered = threading.Event(), threading.Event()
        self.batches = 0
        backend, start = engine._model.backends[0], engine._model.backends[0].start

        def held(arrays):
            self.batches += 1
            self.entered.set()
            assert self._gate.wait(WAIT_S)
            return start(arrays)

        backend.start = held
        self.release = self._gate.set


def test_requests_whose_callers_are_gone_are_not_computed():
    async def use(engine):
        held = Held(engine)
        tasks = [asyncio.create_task(engine.embed(sentences=["x"] * 8)) for _ in range(300)]
        await asyncio.sleep(0)  # each is submitted in its first step
        assert engine.overload_status().queue_absolute >= 298 * 8  # one computes, one may be taken ahead
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        last = asyncio.create_task(engine.embed(sentences=["y"]))
        await asyncio.sleep(0)
        left = engine.overload_status().queue_absolute
        held.release()
        await asyncio.wait_for(last, WAIT_S)
        return left, held.batches, engine.overload_status()

    left, batches, status = run_with(dummy(batch_size=8), use)
    assert left <= 1
    assert batches <= 3
    assert status.queue_absolute == 0
    assert status.queue_fraction == 0.0


def test_a_deadline_that_passes_while_waiting_is_an_error_and_drops_the_work():
    async def use(engine):
        held = Held(engine)
        blocker = asyncio.create_task(engine.embed(sentences=["x"]))
        with pytest.raises(DeadlineExceededError):
            await engine.embed_result(["y"], EmbedOptions(), Call(deadline_s=time.monotonic() + 0.05))
        with pytest.raises(DeadlineExceededError):
            await engine.embed_result(["y"], EmbedOptions(), Call(deadline_s=time.monotonic() - 1.0))
        waiting = engine.overload_status().queue_absolute
        held.release()
        await asyncio.wait_for(blocker, WAIT_S)
        return waiting

    assert run_with(dummy(batch_size=1), use) == 0


def test_a_full_line_is_overloaded_and_says_when_to_come_back():
    async def use(engine):
        held = Held(engine)
        computing = asyncio.create_task(engine.embed(sentences=["x"] * 10))
        await asyncio.to_thread(held.entered.wait, WAIT_S)
        tasks = [asyncio.create_task(engine.embed(sentences=["x"] * 10)) for _ in range(10)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=WAIT_S)
        status, overloaded = engine.overload_status(), engine.is_overloaded()
        held.release()
        _, *answers = await asyncio.gather(computing, *tasks, return_exceptions=True)
        assert [type(answer) for answer in answers] == [tuple] * 2 + [OverloadedError] * 8
        return answers[-1], status, overloaded

    error, status, overloaded = run_with(dummy(batch_size=10, queue_size=20), use)
    assert type(error.retry_after_s) is int
    assert status.queue_fraction == 1.0
    assert overloaded


def test_a_thousand_concurrent_requests_get_their_own_vectors():
    choose = random.Random(0)
    texts = [f"text {number} " + "x" * choose.randrange(200) for number in range(300)]
    requests = [[choose.randrange(len(texts)) for _ in range(choose.randint(1, 64))] for _ in range(1000)]

    async def use(engine):
        single = np.stack([(await engine.embed(sentences=[text]))[0][0] for text in texts])
        answers = await asyncio.gather(*(engine.embed(sentences=[texts[i] for i in request]) for request in requests))
        return single, answers

    single, answers = run_with(dummy(queue_size=100_000), use)
    for request, (vectors, usage) in zip(requests, answers, strict=True):
        np.testing.assert_array_equal(np.stack(vectors), single[request])
        assert usage == sum(len(texts[i]) + 1 for i in request)


def test_replicas_by_device_id_share_the_work():
    args = dummy(device_id=[0, 1, 2])

    async def use(engine):
        assert len(engine._model.backends) == 3
        return await asyncio.gather(*(engine.embed(sentences=[f"{n}"] * 20) for n in range(50)))

    assert len(run_with(args, use)) == 50


def test_the_card_and_the_capabilities_say_what_is_served():
    for task in ("embed", "rerank", "classify"):
        engine = AsyncEmbeddingEngine.from_args(dummy(task=task, served_model_name="mine"))
        assert engine.capabilities == {task}
        assert engine.card.served_name == "mine"
        assert engine.card.batch_size == 32


def test_a_worker_that_dies_is_replaced_and_the_engine_goes_on():
    async def use(engine):
        backend, start = engine._model.backends[0], engine._model.backends[0].start

        def dies(_):
            backend.start = start
            raise Death("gone")

        backend.start = dies
        with pytest.raises(NotReadyError):
            await asyncio.wait_for(engine.embed(sentences=["a"]), WAIT_S)
        vectors, _ = await asyncio.wait_for(engine.embed(sentences=["a"]), WAIT_S)
        return engine.restarts, engine.is_healthy, len(vectors)

    assert run_with(dummy(), use) == (1, True, 1)


def test_where_the_time_of_a_request_went_is_told_to_who_asks():
    call = Call(times=StageTimes())
    before_s = time.monotonic()
    run_with(dummy(), lambda engine: engine.embed_result(["a", "b" * 100], call=call))
    times = call.times
    assert times.model == "some/dummy"
    assert before_s < times.computed_s <= time.monotonic()
    assert 0 < times.tokenize_s + times.queue_s + times.forward_s <= times.computed_s - before_s


def test_batches_are_counted_by_their_tokens_and_how_full_they_are():
    async def use(engine):
        await engine.embed_result(["abc"])
        return engine.batch_measures()

    found = run_with(dummy(model_warmup=False), use)
    assert (sum(found.tokens.counts), found.tokens.total) == (1, 4)  # a byte is a token, after a leading one
    assert 0 < found.fill.total <= 1
