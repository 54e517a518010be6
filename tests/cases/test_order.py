"""Cases about vectors that reach the right text, and depend on nothing else."""

from __future__ import annotations

import asyncio
import random

import numpy as np
import pytest

from cases.served import cosines, vectors_of
from texts import sample_words

PROBE = "the probe text about lima"
SAME = 1e-5  # largest difference that float32 on a CPU may show


def shuffled(count: int, longest: int) -> list[str]:
    """Texts of 1 to `longest` words in a random order of lengths, each with a number of its own."""
    chance = random.Random(3)
    lengths = [1 + number * longest // count for number in range(count)]
    chance.shuffle(lengths)
    return [" ".join([str(number), *sample_words(chance, length - 1)]) for number, length in enumerate(lengths)]


@pytest.fixture(scope="module")
def alone(embedder):
    """Vectors of texts that were sent one by one."""
    return lambda texts: np.vstack([embedder.embed(text) for text in texts])


def test_b033_every_vector_belongs_to_the_text_at_its_index(embedder, alone):
    texts = shuffled(100, 200)
    together, single = embedder.embed(texts), alone(texts)  # `embed` checks that indices are 0..99 in order
    assert cosines(together, single).min() >= 0.9999
    distances = np.linalg.norm(together[:, None] - single[None], axis=-1)
    assert np.argmin(distances, axis=1).tolist() == list(range(100))


def test_b034_requests_that_run_at_once_do_not_get_each_others_vectors(embedder, alone):
    clients, requests = 64, 20
    texts = [f"client {client} request {number}" for client in range(clients) for number in range(requests)]

    async def one_client(client, own):
        return [await client.post("/v1/embeddings", json={"input": [text, PROBE]}) for text in own]

    async def main(client):
        shares = (texts[start : start + requests] for start in range(0, len(texts), requests))
        return await asyncio.gather(*(one_client(client, own) for own in shares))

    answers = [answer for share in embedder.run(main) for answer in share]
    vectors = np.stack([vectors_of(answer) for answer in answers])
    np.testing.assert_allclose(vectors[:, 0], embedder.embed(texts), atol=SAME)
    np.testing.assert_allclose(vectors[:, 1], np.broadcast_to(alone([PROBE]), vectors[:, 1].shape), atol=SAME)


@pytest.mark.parametrize("size", [1, 2, 8, 16, 64, 256])
def test_b035_a_text_has_the_same_vector_in_a_batch_of_any_size(embedder, alone, size):
    together = embedder.embed([*shuffled(size - 1, 60), PROBE])[-1]
    assert cosines(together, alone([PROBE])[0]) >= 0.99999


@pytest.mark.parametrize("neighbour", ["tea", "word " * 400])
@pytest.mark.parametrize("place", [0, 1])
def test_b036_a_neighbour_of_any_length_changes_less_than_float_noise(embedder, alone, neighbour, place):
    texts = [neighbour, PROBE] if place else [PROBE, neighbour]
    np.testing.assert_allclose(embedder.embed(texts)[place], alone([PROBE])[0], atol=SAME)


def test_b061_a_large_request_does_not_poison_the_ones_after_it(embedder, alone):
    before = alone([PROBE])
    for _ in range(20):
        embedder.embed(["word " * 200] * 64)
        after = alone([PROBE])
        np.testing.assert_allclose(after, before, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(after, axis=1), 1.0, atol=1e-5)
