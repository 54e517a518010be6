"""Images and sounds in every dialect: which field holds them, what reaches the engine, and what is counted."""

from __future__ import annotations

import base64

import numpy as np
import pytest

from api.fake_engine import FakeEngine, fake_vector
from infinity_emb.errors import MediaError
from infinity_emb.types import Modality

URI = "data:image/png;base64,AAAA"
URL = "http://pictures.test/x.png"
BARE = base64.b64encode(b"bytes of a file").decode()
ALL = frozenset(Modality)


@pytest.fixture
def reader(serve):
    """A server of one model that reads everything."""
    return serve(FakeEngine(modalities=ALL))


def numbers(answer) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return np.array([item["embedding"] for item in body["data"]] if "data" in body else body["embeddings"]["float"])


def asked(served) -> tuple:
    """Modality and sources of the one call the engine got."""
    (call,) = served.engine.calls
    return call[1], call[2]


def content(kind: str, source: str) -> dict:
    part = {"type": kind, kind: {"url": source} if kind.endswith("_url") else source}
    return {"content": [part]}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": [URI, URL], "modality": "image"}),
        ("/embeddings", {"input": [URI, URL], "modality": "image"}),
        ("/embeddings_image", {"input": [URI, URL]}),
        ("/v1/embeddings", {"input": [{"image": URI}, {"image": URL}]}),
        ("/v1/embeddings", {"input": [{"image": URI}, {"url": URL}]}),
        ("/v2/embed", {"images": [URI, URL]}),
        ("/v2/embed", {"inputs": [content("image_url", URI), content("image_url", URL)]}),
        ("/v1/multimodalembeddings", {"inputs": [content("image_base64", URI), content("image_url", URL)]}),
        ("/v1/embeddings", {"messages": [[{"role": "user", **content("image_url", one)}] for one in (URI, URL)]}),
    ],
)
def test_images_of_every_dialect_reach_the_engine_in_order(reader, path, body):
    vectors = numbers(reader.post(path, body))
    assert asked(reader) == (Modality.IMAGE, [URI, URL])
    np.testing.assert_allclose(vectors, [fake_vector(URI), fake_vector(URL)], atol=1e-6)


@pytest.mark.parametrize("field", ["image", "bytes"])
def test_bare_base64_is_the_bytes_of_a_file(reader, field):
    reader.post("/v1/embeddings", {"input": [{field: BARE}]})
    assert asked(reader) == (Modality.IMAGE, [b"bytes of a file"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/embeddings_audio", {"input": [URL]}),
        ("/embeddings", {"input": URL, "modality": "audio"}),
        ("/v1/embeddings", {"input": [{"audio": URL}]}),
    ],
)
def test_sounds_reach_the_engine(reader, path, body):
    assert numbers(reader.post(path, body)).shape[0] == 1
    assert asked(reader) == (Modality.AUDIO, [URL])


def test_texts_and_images_of_one_request_are_answered_in_its_order(reader):
    answer = reader.post("/v1/embeddings", {"input": ["a b", {"image": URI}, {"text": "c"}, {"image": URL}]})
    expected = [fake_vector(item) for item in ("a b", URI, "c", URL)]
    expected[0] /= np.linalg.norm(expected[0])
    expected[2] /= np.linalg.norm(expected[2])
    np.testing.assert_allclose(numbers(answer), expected, atol=1e-6)
    assert [item["index"] for item in answer.json()["data"]] == [0, 1, 2, 3]
    assert answer.json()["usage"]["prompt_tokens"] == 4 + 3 + 2 * 10


def test_cut_texts_between_images_are_named_by_their_place(reader):
    answer = reader.post("/v1/embeddings", {"input": [{"image": URI}, "a", {"text": "long " * 40}]})
    assert answer.json()["usage"]["truncated_items"] == [2]


def test_places_of_images_between_texts_are_told_to_the_engine(reader):
    reader.post("/v1/embeddings", {"input": ["a", {"image": URI}, "b", {"image": URL}]})
    (media,) = [call for call in reader.engine.calls if call[1] is Modality.IMAGE]
    assert list(media[-1]) == [1, 3]


def test_voyage_counts_texts_and_pixels_apart(reader):
    inputs = [content("text", "a"), content("image_base64", URI), content("image_url", URL)]
    usage = reader.post("/v1/multimodalembeddings", {"inputs": inputs}).json()["usage"]
    assert usage["text_tokens"] == 3
    assert usage["image_pixels"] == 200
    assert usage["total_tokens"] == 3 + 2 * 10


def test_an_image_that_cannot_be_read_is_a_400_with_the_engine_s_words(serve):
    served = serve(FakeEngine(modalities=ALL, error=MediaError("Item 0 is no image.", param="input", item_index=0)))
    answer = served.post("/v1/embeddings", {"input": [URI], "modality": "image"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "Item 0 is no image."


def test_text_and_image_in_one_item_are_refused(reader):
    both = {"content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": URI}}]}
    answer = reader.post("/v2/embed", {"inputs": [both]})
    assert answer.status_code == 400
    assert "one item" in answer.json()["message"]


def test_models_lists_what_is_read(reader):
    (entry,) = reader.get("/models").json()["data"]
    assert {"image_embed", "audio_embed"} <= set(entry["capabilities"])
    assert entry["modalities"] == ["audio", "image", "text"]
