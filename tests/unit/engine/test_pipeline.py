from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

from infinity_emb import InfinityPipeline
from infinity_emb.engine.pipeline import CHUNK_ITEMS
from infinity_emb.errors import NotReadyError
from infinity_emb.types import EmbedOptions
from stub_backends import WAIT_S


@pytest.fixture(scope="module")
def pipeline():
    with InfinityPipeline("e", engine="dummy") as made:
        yield made


def test_a_list_gives_a_matrix_and_one_text_a_matrix_of_one_row(pipeline):
    vectors = pipeline.encode(["a", "bc", ""])
    assert (vectors.shape, vectors.dtype) == ((3, 384), np.float32)
    np.testing.assert_array_equal(pipeline.encode("bc"), vectors[1:2])


def test_no_texts_give_a_matrix_of_no_rows(pipeline):
    assert pipeline.encode([]).shape == (0, 384)
    assert pipeline.encode([], dimensions=7).shape == (0, 7)


def test_more_texts_than_one_request_may_hold_come_back_in_order():
    with InfinityPipeline("e", engine="dummy", max_client_batch_size=100) as pipeline:
        texts = [f"{number}" for number in range(2 * CHUNK_ITEMS + 3)]
        vectors = pipeline.encode(texts)
        assert len(vectors) == len(texts)
        for number in (0, 99, 100, CHUNK_ITEMS, 2 * CHUNK_ITEMS + 2):
            np.testing.assert_array_equal(vectors[number], pipeline.encode(texts[number])[0])


def test_options_reach_the_engine(pipeline):
    assert pipeline.encode("a", dimensions=16).shape == (1, 16)
    np.testing.assert_array_equal(pipeline.encode("a", prompt="p: "), pipeline.encode("p: a"))
    assert np.linalg.norm(pipeline.encode("some text", normalize=False)) != pytest.approx(1.0, abs=1e-3)


def test_it_works_where_an_event_loop_runs_already(pipeline):
    async def notebook():
        blocking = pipeline.encode("a")
        awaited = await pipeline.aencode("a", EmbedOptions())
        return blocking, awaited

    blocking, awaited = asyncio.run(notebook())
    np.testing.assert_array_equal(blocking, awaited)


def test_rerank_and_classify():
    with InfinityPipeline("r", engine="dummy", task="rerank") as pipeline:
        ranked = pipeline.rerank("q", ["a", "b", "c"], top_n=2)
        assert len(ranked) == 2
        assert ranked[0].relevance_score >= ranked[1].relevance_score
    with InfinityPipeline("c", engine="dummy", task="classify") as pipeline:
        assert len(pipeline.classify("a")) == 1
        assert len(pipeline.classify(["a", "b"])[1]) == 3


def test_close_twice_is_harmless_and_later_use_says_why_it_fails():
    pipeline = InfinityPipeline("e", engine="dummy")
    pipeline.close()
    pipeline.close()
    with pytest.raises(NotReadyError, match="stopped"):
        pipeline.encode("a")


def test_close_answers_a_call_that_runs_in_another_thread():
    pipeline = InfinityPipeline("e", engine="dummy")
    answers = []

    def encode():
        try:
            answers.append(len(pipeline.encode(["x"] * 5000)))
        except NotReadyError as error:
            answers.append(error)

    threads = [threading.Thread(target=encode) for _ in range(8)]
    for thread in threads:
        thread.start()
    pipeline.close()
    for thread in threads:
        thread.join(WAIT_S)
    assert len(answers) == 8


def test_a_dropped_pipeline_ends_its_threads():
    before = threading.active_count()
    pipeline = InfinityPipeline("e", engine="dummy")
    pipeline.encode("a")
    del pipeline
    gc.collect()
    assert threading.active_count() <= before


@pytest.mark.parametrize(
    "script",
    [
        "print(InfinityPipeline('e', engine='dummy').encode(['a', 'b']).shape)",
        "p = InfinityPipeline('e', engine='dummy'); print(p.encode(['a', 'b']).shape)",
        "with InfinityPipeline('e', engine='dummy') as p: print(p.encode(['a', 'b']).shape)",
        (
            "import asyncio\nasync def main(): print(InfinityPipeline('e', engine='dummy').encode(['a', 'b']).shape)\n"
            "asyncio.run(main())"
        ),
    ],
    ids=["expression", "never closed", "with", "in a loop"],
)
def test_a_script_ends_cleanly(script):
    script = "from infinity_emb import InfinityPipeline\n" + script
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "(2, 384)\n", "")


SIGNAL_AFTER_CLOSING = """
import os, signal, sys
from infinity_emb import InfinityPipeline
first, second = (InfinityPipeline(sys.argv[1], engine="openvino", fidelity=0) for _ in range(2))
first.close()
second.close()
del first, second
signal.signal(signal.SIGTERM, lambda *_: print("alive", flush=True))
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_signal_after_models_were_closed_in_another_order_does_not_crash(minilm_folder):
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_AFTER_CLOSING, str(minilm_folder)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr
