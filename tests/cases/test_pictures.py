"""Cases about pictures: what a model that reads texts and pictures answers to good, odd and broken ones."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from cases.served import Served, cosines, message_of
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.types import MediaUrls
from loopback import LoopbackServer
from pictures import data_uri, encoded, picture
from tiny_joint import DIM, POSITIONS, tiny_clip

GOOD = encoded(picture(48, 40))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_clip(tmp_path_factory.mktemp("joint") / "clip")


@pytest.fixture(scope="module")
def stub():
    with LoopbackServer(lambda exchange: exchange.send(200, GOOD, {"Content-Type": "image/png"})) as server:
        yield server


@pytest.fixture(scope="module")
def engine(folder, start):
    """Fetches from loopback, where the tests' own server is; the guard has tests of its own."""
    return start(folder, served_model_name="acme/clip", media_urls=MediaUrls.ANY)


@pytest.fixture(scope="module")
def joint(engine):
    return Served(engine)


def images(joint, sources, **fields):
    """Vectors of a request that must succeed, all of unit length."""
    vectors = joint.embed(sources, modality="image", **fields)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    return vectors


def test_b029_a_long_caption_keeps_its_end_in_the_last_place(joint, engine):
    caption = "a long caption of the quick brown fox " * 60
    answer = joint.post("/v1/embeddings", input=[caption], modality="text")
    assert answer.status_code == 200
    assert answer.json()["usage"]["prompt_tokens"] == POSITIONS
    assert answer.headers["x-truncated"] == "1"
    (read,) = TextPreprocessor(engine._model.spec).texts([caption])
    whole = engine._model.spec.config["text_config"]
    assert int(read.token_ids[-1]) == whole["eos_token_id"]
    assert list(read.token_ids).count(whole["eos_token_id"]) == 1


def test_b082_a_picture_of_any_mode_is_the_picture_in_rgb(joint):
    base = picture(32, 32, seed=3)
    modes = [base.convert(mode) for mode in ("RGB", "RGBA", "P", "L", "LA")]
    clear = base.convert("P")
    clear.info["transparency"] = bytes(range(256))
    deep = Image.fromarray(np.asarray(base.convert("L")).astype(np.uint16) * 200 + 7)
    files = [encoded(image) for image in modes] + [encoded(clear), encoded(deep)]
    files.append(encoded(base.convert("CMYK"), "JPEG", quality=95))
    plain = [encoded(opened(file).convert("RGB")) for file in files]
    vectors = images(joint, [data_uri(file) for file in files])
    expected = images(joint, [data_uri(file) for file in plain])
    assert vectors.shape == (8, DIM)
    assert (cosines(vectors, expected) >= 0.9999).all()


def opened(file: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(file))
    return image.convert("RGBA") if "transparency" in image.info else image


BROKEN = {
    "a JPEG without its end": encoded(picture(300, 200), "JPEG")[:-2000],
    "a PNG with a damaged piece": bytes(byte ^ (0xFF if 60 <= place < 80 else 0) for place, byte in enumerate(GOOD)),
    "a PNG cut in the middle": GOOD[: len(GOOD) // 2],
    "a text": b"just words, whatever the name of the file says",
    "nothing but a head": GOOD[:8],
    "an SVG": b"<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'/>",
    "a PostScript program": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\nshowpage\n",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_b084_a_broken_picture_is_refused_by_its_index_and_harms_no_other(joint, content):
    answer = joint.post("/v1/embeddings", input=[data_uri(GOOD), data_uri(content)], modality="image")
    assert answer.status_code == 400
    assert "Item 1" in message_of(answer)
    assert images(joint, [data_uri(GOOD)]).shape == (1, DIM)


def test_b084_a_small_file_of_very_many_pixels_is_refused(folder, start):
    served = Served(start(folder, max_image_pixels=10_000))
    bomb = encoded(Image.new("1", (2000, 2000)))
    assert len(bomb) < 2000
    message = message_of(served.post("/v1/embeddings", input=[data_uri(GOOD), data_uri(bomb)], modality="image"))
    assert "Item 1" in message
    assert "--max-image-pixels" in message


def test_b086_a_model_that_reads_pictures_fetches_none_from_inside(folder, start, stub):
    served = Served(start(folder))
    before = len(stub.requests)
    message = message_of(served.post("/v1/embeddings", input=[f"{stub.url}/x.png"], modality="image"))
    assert "no public host" in message
    assert "Item 0" in message
    assert len(stub.requests) == before


def test_b088_a_data_uri_is_the_picture_that_a_url_leads_to(joint, stub):
    by_url, by_uri, shouted = images(
        joint,
        [f"{stub.url}/x.png", data_uri(GOOD), data_uri(GOOD).replace("data:image/png;base64", "DATA:IMAGE/PNG;BASE64")],
    )
    np.testing.assert_allclose(by_url, by_uri, atol=1e-6)
    np.testing.assert_allclose(shouted, by_uri, atol=1e-6)


@pytest.mark.parametrize(
    "uri", ["data:image/png;base64,not!!base64", "data:image/png,abc", "data:text/plain;base64,aGk="]
)
def test_b088_a_broken_data_uri_is_a_400_by_its_index(joint, uri):
    assert "Item 1" in message_of(joint.post("/embeddings", input=[data_uri(GOOD), uri], modality="image"))


def test_b089_a_modality_the_model_does_not_read_is_named_with_those_it_does(joint, embedder):
    message = message_of(joint.post("/v1/embeddings", input=["http://x.test/a.wav"], modality="audio"))
    assert all(word in message for word in ("acme/clip", "audio", "embed image", "embed text"))
    message = message_of(embedder.post("/v1/embeddings", input=[data_uri(GOOD)], modality="image"))
    assert all(word in message for word in ("acme/embed", "image", "embed text"))


def test_b089_texts_and_pictures_have_vectors_of_one_length(joint):
    assert joint.embed(["tea is hot"], modality="text").shape == images(joint, [data_uri(GOOD)]).shape == (1, DIM)
    (entry,) = joint.get("/models").json()["data"]
    assert entry["capabilities"] == ["embed", "image_embed"]
    assert entry["modalities"] == ["image", "text"]


def test_b090_one_item_that_is_no_picture_is_named_and_the_others_are_embedded_without_it(joint, stub):
    good = [f"{stub.url}/x.png", data_uri(GOOD)]
    assert "Item 2" in message_of(joint.post("/v1/embeddings", input=[*good, "just a sentence"], modality="image"))
    first, second = images(joint, good)
    np.testing.assert_allclose(first, second, atol=1e-6)


def test_b090_a_data_uri_in_a_text_request_is_text(joint):
    vectors = joint.embed(["data:image/png;base64,AAAA", "tea"], modality="text")
    assert vectors.shape == (2, DIM)


def test_b091_vectors_are_those_of_the_reference_library(joint, folder):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    pictures = [picture(w, h, seed) for seed, (w, h) in enumerate([(90, 40), (40, 90), (32, 32), (5, 4), (64, 64)])]
    pictures[-1] = pictures[-1].convert("L")
    texts = ["tea is hot", "the lazy dog"]
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    pixels = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")(pictures, return_tensors="pt")
    tokens = transformers.AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    with torch.inference_mode():
        expected = model.get_image_features(**pixels).pooler_output.numpy()
        wanted = model.get_text_features(**tokens).pooler_output.numpy()
    assert (cosines(images(joint, [data_uri(encoded(image)) for image in pictures]), expected) >= 0.999).all()
    assert (cosines(joint.embed(texts), wanted) >= 0.999).all()
