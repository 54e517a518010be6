"""An engine that reads images: what it takes, in which order it answers, and how it starts and stops."""

from __future__ import annotations

import asyncio
import threading
from contextlib import closing

import numpy as np
import pytest

from infinity_emb import AsyncEmbeddingEngine, EngineArgs, InfinityPipeline, SyncEngineArray
from infinity_emb.engine.tower import MAX_ITEMS
from infinity_emb.errors import BackendError, CapabilityError, DimensionsError, InputTooLargeError, MediaError
from infinity_emb.types import EmbedOptions, Modality
from pictures import data_uri, encoded, picture
from tiny_joint import DIM, PATCH, SIZE, tiny_clip

POSITIONS = (SIZE // PATCH) ** 2 + 1
FILES = [encoded(picture(20 + 7 * number, 40, number)) for number in range(6)]
BROKEN = FILES[0][:60]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_clip(tmp_path_factory.mktemp("joint") / "clip")


def args(folder, **options) -> EngineArgs:
    chosen = {"engine": "onnxruntime", "fidelity": 0.0, "threads": 1, **options}
    return EngineArgs(model_name_or_path=str(folder), **chosen)


@pytest.fixture(scope="module")
def engine(folder):
    made = AsyncEmbeddingEngine.from_args(args(folder, batch_size=4))
    made.start()
    yield made
    made.close()


def embed(engine, sources, **options):
    return asyncio.run(engine.media_result(sources, Modality.IMAGE, EmbedOptions(**options)))


def test_bytes_data_uris_and_open_pictures_are_read_in_order(engine):
    mixed = [FILES[0], data_uri(FILES[1]), picture(20 + 14, 40, 2), bytearray(FILES[3]), FILES[4], FILES[5]]
    result = embed(engine, mixed)
    assert result.vectors.shape == (6, DIM)
    np.testing.assert_allclose(np.linalg.norm(result.vectors, axis=1), 1.0, atol=1e-5)
    alone = np.concatenate([embed(engine, [file]).vectors for file in FILES])
    np.testing.assert_allclose(result.vectors, alone, atol=1e-5)
    assert result.usage.prompt_tokens == result.usage.media_tokens == 6 * POSITIONS
    assert result.usage.image_pixels == 6 * SIZE * SIZE


def test_the_original_s_method_gives_a_list_and_the_cost(engine):
    vectors, usage = asyncio.run(engine.image_embed(images=FILES[:2], matryoshka_dim=8))
    assert [vector.shape for vector in vectors] == [(8,), (8,)]
    assert usage == 2 * POSITIONS
    assert asyncio.run(engine.image_embed(images=[])) == ([], 0)


def test_length_and_dimensions_can_be_asked_for(engine):
    unit, raw = embed(engine, FILES).vectors, embed(engine, FILES, normalize=False).vectors
    lengths = np.linalg.norm(raw, axis=1, keepdims=True)
    assert (np.abs(lengths - 1) > 0.01).any()
    np.testing.assert_allclose(raw / lengths, unit, atol=1e-5)
    short = embed(engine, FILES, dimensions=8).vectors
    np.testing.assert_allclose(short, unit[:, :8] / np.linalg.norm(unit[:, :8], axis=1, keepdims=True), atol=1e-5)
    with pytest.raises(DimensionsError):
        embed(engine, FILES, dimensions=DIM + 1)


def test_one_broken_item_is_named_by_its_place(engine):
    with pytest.raises(MediaError, match="Item 2") as caught:
        embed(engine, [FILES[0], FILES[1], BROKEN, FILES[3]])
    assert caught.value.item_index == 2
    with pytest.raises(MediaError, match="Item 7"):
        asyncio.run(engine.media_result([FILES[0], BROKEN], Modality.IMAGE, places=[3, 7]))


def test_what_is_too_much_is_refused(engine, folder):
    with pytest.raises(InputTooLargeError, match=str(MAX_ITEMS)):
        embed(engine, [FILES[0]] * (MAX_ITEMS + 1))
    small = AsyncEmbeddingEngine.from_args(args(folder, max_media_bytes=100))
    small.start()
    with closing(small), pytest.raises(MediaError, match="100 bytes"):
        embed(small, [FILES[0]])


def test_what_it_does_not_read_or_give_is_refused_by_name(engine):
    with pytest.raises(CapabilityError, match=r"audio.*embed image, embed text"):
        asyncio.run(engine.audio_embed(audios=[b"RIFF"]))
    with pytest.raises(CapabilityError, match="single tokens"):
        asyncio.run(engine.multi_vector_result(["a"]))
    assert engine.capabilities == {"embed", "image_embed"}


def test_a_failing_image_model_harms_no_text(engine, monkeypatch):
    def broken(_):
        raise RuntimeError("no device")

    (tower,) = engine._model.towers.values()
    monkeypatch.setattr(tower.backends[0], "start", broken)
    with pytest.raises(BackendError):
        embed(engine, FILES[:2])
    vectors, _ = asyncio.run(engine.embed(["tea is hot"]))
    assert vectors[0].shape == (DIM,)


def test_it_can_be_stopped_and_started_again(folder):
    async def main():
        engine = AsyncEmbeddingEngine.from_args(args(folder))
        made = []
        for _ in range(2):
            async with engine:
                assert engine.is_healthy
                made.append((await engine.image_embed(images=FILES[:1]))[0][0])
        engine.close()
        return made

    first, second = asyncio.run(main())
    np.testing.assert_array_equal(first, second)


def test_the_synchronous_faces_read_images_too(folder):
    array = SyncEngineArray([args(folder)])
    with array:
        vectors, _ = array.image_embed(model=0, images=FILES).result()
    with InfinityPipeline(str(folder), engine="onnxruntime", fidelity=0.0, threads=1) as pipeline:
        matrix = pipeline.encode_media(FILES)
        assert pipeline.encode_media([]).shape == (0, DIM)
    np.testing.assert_allclose(matrix, np.stack(vectors), atol=1e-6)


def test_waiting_images_count_as_load_beside_waiting_texts(folder, monkeypatch):
    engine = AsyncEmbeddingEngine.from_args(args(folder, model_warmup=False))
    begun, release = threading.Event(), threading.Event()
    (tower,) = engine._model.towers.values()
    begin = tower.backends[0].start

    def held(arrays):
        begun.set()
        release.wait(30)
        return begin(arrays)

    monkeypatch.setattr(tower.backends[0], "start", held)
    sources = FILES * 20  # one batch computes, one may be taken ahead, the rest waits

    async def main():
        async with engine:
            assert engine.overload_status().queue_absolute == 0
            work = asyncio.create_task(engine.image_embed(images=sources))
            assert await asyncio.to_thread(begun.wait, 30)
            found = engine.overload_status(), engine.waiting_line(5), engine.busy_s()
            release.set()
            await work
            return found

    status, line, busy_s = asyncio.run(main())
    engine.close()
    assert 0 < status.queue_absolute < len(sources)
    assert status.queue_tokens == status.queue_absolute * POSITIONS
    assert status.queue_fraction > 0
    assert [one.items for one in line] == [len(sources)]
    assert busy_s > 0
