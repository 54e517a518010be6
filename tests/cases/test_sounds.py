"""Faults with sounds: channels, sampling rates, formats, and one bad item among good ones."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import tiny_sound
from cases.served import REFUSED, Served, vectors_of
from loopback import LoopbackServer
from tiny_sound import data_uri, encode, tone

MONO = encode(tone())


@pytest.fixture(scope="module")
def clap(start, tmp_path_factory):
    pytest.importorskip("soundfile")
    folder = tiny_sound.tiny_clap(tmp_path_factory.mktemp("clap"))
    return Served(start(folder, served_model_name="acme/clap", media_urls="any"))


def heard(clap: Served, *files: bytes) -> np.ndarray:
    return clap.embed([data_uri(file) for file in files], modality="audio")


def test_b092_stereo_gives_the_vector_of_mono_and_other_channels_are_averaged(clap):
    six = tone(channels=6) * np.array([0.0, 2.0, 1.0, 1.0, 0.5, 1.5], np.float32)
    files = (MONO, encode(tone(channels=2)), encode(six / 2, subtype="FLOAT"), encode(tone() / 2, subtype="FLOAT"))
    mono, stereo, surround, half = heard(clap, *files)
    assert mono @ stereo >= 0.9999
    assert surround @ half >= 0.9999


@pytest.mark.parametrize("rate", [44_100, 16_000])
def test_b093_the_same_tone_at_another_rate_gives_nearly_the_same_vector(clap, rate):
    own, other, another_tone = heard(clap, MONO, encode(tone(rate=rate), rate=rate), encode(tone(3000.0)))
    assert own @ other >= 0.98
    assert own @ another_tone < 0.95


def test_b095_every_format_gives_nearly_the_vector_of_the_wav_file_by_uri_and_by_url(clap):
    files = {
        "16 bit": MONO,
        "24 bit": encode(tone(), subtype="PCM_24"),
        "float": encode(tone(), subtype="FLOAT"),
        "flac": encode(tone(), "FLAC"),
        "ogg": encode(tone(), "OGG"),
        "mp3": encode(tone(), "MP3"),
    }
    vectors = heard(clap, *files.values())
    assert (vectors @ vectors[0] >= 0.95).all(), dict(zip(files, vectors @ vectors[0], strict=True))
    content = dict(zip(("/a", "/b", "/c", "/d", "/e", "/f"), files.values(), strict=True))
    with LoopbackServer(lambda exchange: exchange.send(200, content[exchange.path])) as server:
        by_url = clap.embed([server.url + path for path in content], modality="audio")
    np.testing.assert_array_equal(by_url, vectors)


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (b"", "empty"),
        (encode(tone()[:0]), "no samples"),
        (b"\0\0\0\x20ftypM4A \0\0\0\0", "MPEG-4"),
        (b"just a sentence", "not known"),
        (encode(tone(), "FLAC")[:3000], "Item 1"),
    ],
    ids=["zero bytes", "zero frames", "another format", "no sound", "cut short"],
)
def test_b095_what_holds_no_sound_is_refused_by_its_index_and_the_next_request_is_served(clap, file, words):
    answer = clap.post("/v1/embeddings", input=[data_uri(MONO), data_uri(file)], modality="audio")
    assert answer.status_code in REFUSED
    if file:
        assert answer.status_code == 400
        assert words in answer.json()["error"]["message"]
    assert "Item 1" in answer.json()["error"]["message"]
    assert heard(clap, MONO).shape == (1, tiny_sound.DIM)


def test_b089_a_text_for_a_model_of_sounds_is_embedded_into_their_space_and_an_image_is_refused(clap):
    text = clap.embed(["tea is hot"], modality="text")
    assert text.shape == heard(clap, MONO).shape
    assert np.linalg.norm(text) == pytest.approx(1, abs=1e-5)
    answer = clap.post("/v1/embeddings", input=["data:image/png;base64,AA=="], modality="image")
    assert answer.status_code == 400
    assert "embed audio" in answer.json()["error"]["message"]


def test_b090_one_bad_item_among_sounds_is_named_and_the_good_ones_come_in_order(clap):
    other = encode(tone(3000.0))
    answer = clap.post("/v1/embeddings", input=[data_uri(MONO), data_uri(other), "just a sentence"], modality="audio")
    assert answer.status_code in REFUSED
    assert "Item 2" in answer.json()["error"]["message"]
    first, second, third = heard(clap, MONO, other, MONO)
    np.testing.assert_allclose(first, third, atol=1e-6)
    assert first @ second < 0.95


def test_b090_a_sound_is_the_same_in_every_form_of_a_request_also_beside_texts(clap):
    bare = base64.b64encode(MONO).decode()
    part = {"type": "input_audio", "input_audio": {"data": bare, "format": "wav"}}
    wanted = heard(clap, MONO)[0]
    for inputs in ([{"audio": data_uri(MONO)}], [{"audio": bare}], [part], [part, {"text": "tea is hot"}]):
        np.testing.assert_allclose(clap.embed(inputs)[0], wanted, atol=1e-6)
    answer = clap.post("/v1/embeddings", messages=[{"role": "user", "content": [part]}])
    np.testing.assert_allclose(vectors_of(answer)[0], wanted, atol=1e-6)


def test_b022_a_sound_longer_than_the_model_hears_is_said_to_be_cut(clap):
    answer = clap.post("/v1/embeddings", input=[data_uri(MONO), data_uri(encode(tone(seconds=1.5)))], modality="audio")
    assert vectors_of(answer).shape == (2, tiny_sound.DIM)
    assert answer.headers["x-truncated"] == "1"
    assert answer.json()["usage"]["truncated_items"] == [1]
