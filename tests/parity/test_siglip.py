"""SigLIP gives the vectors of transformers, whose processor fills every text up and hides none of the filling."""

from __future__ import annotations

import numpy as np
import pytest

import measured
from forward import LIBRARIES, REAL_BACKENDS, compute, compute_alone, opened, spec_of
from infinity_emb.models.preprocess.choice import make_preprocessor
from infinity_emb.models.preprocess.image import ImagePreprocessor
from infinity_emb.models.preprocess.media import MediaLimits
from infinity_emb.models.spec.joint import media_view
from infinity_emb.types import Modality
from tiny_siglip import DIM, POSITIONS, tiny_siglip

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
image_library = pytest.importorskip("PIL.Image")

TOLERANCE = 1e-5
SIZES = ((100, 40), (41, 97), (32, 32), (3, 5), (301, 200))
TEXTS = ["tea is hot", "", "Berlin, 2019!", "the quick brown fox " * 60, "你好 人工智能", "  a\n\tb ", "a" * 80]
CHOICES = {
    "as published": {},
    "of the second generation": {"tokenizer": "gemma"},
    "in half precision": {"dtype": "float16"},
}
PLACES = [(name, "as published") for name in REAL_BACKENDS] + [("openvino", choice) for choice in CHOICES]


def reference(folder, pictures):
    """Vectors of transformers, made unit length: images, texts."""
    model = transformers.SiglipModel.from_pretrained(folder, dtype=torch.float32).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    tokens = tokenizer(TEXTS, padding="max_length", truncation=True, max_length=POSITIONS, return_tensors="pt")
    assert list(tokens) == ["input_ids"]
    with torch.inference_mode():
        images = model.get_image_features(**processor(pictures, return_tensors="pt")).pooler_output
        texts = model.get_text_features(**tokens).pooler_output
    vectors = [torch.nn.functional.normalize(vectors, dim=-1).numpy() for vectors in (images, texts)]
    return *vectors, tokens.input_ids.tolist()


def errors_of(name, view, items, wanted):
    """Largest differences of the vectors computed together and alone."""
    with opened(name, view) as backend:
        found = compute(backend, items)["embedding"], compute_alone(backend, items)["embedding"]
    assert all(vectors.shape == wanted.shape == (len(items), DIM) for vectors in found)
    return [float(abs(vectors - wanted).max()) for vectors in found]


@pytest.mark.filterwarnings("ignore:::transformers")
@pytest.mark.parametrize(("name", "choice"), dict.fromkeys(PLACES))
def test_vectors_of_pictures_and_texts_are_those_of_transformers(name, choice, tmp_path):
    pytest.importorskip(LIBRARIES[name])
    folder = tiny_siglip(tmp_path / "model", **CHOICES[choice])
    spec = spec_of(folder)
    chance = np.random.default_rng(5)
    pictures = [
        image_library.fromarray(chance.integers(0, 256, (height, width, 3), dtype=np.uint8)) for width, height in SIZES
    ]
    images, texts, ids = reference(folder, pictures)
    assert min(vectors.std(axis=0).mean() for vectors in (images, texts)) > 0.02, "it must tell them apart"
    reader = ImagePreprocessor(spec.media_spec(Modality.IMAGE), MediaLimits(pixels=1 << 20))
    read = [reader.read(picture, index) for index, picture in enumerate(pictures)]
    errors = errors_of(name, media_view(spec, Modality.IMAGE), read, images)
    features = make_preprocessor(spec).texts(TEXTS)
    assert [item.token_ids.tolist() for item in features] == ids
    assert [item.truncated for item in features] == [text in {TEXTS[3], TEXTS[6]} for text in TEXTS]
    text_errors = errors_of(name, spec, features, texts)
    if choice == "as published":
        measured.note(measured.JOINT, "pictures of SigLIP", name, max(errors))
        measured.note(measured.JOINT, "texts of SigLIP", name, max(text_errors))
    assert max(errors + text_errors) <= TOLERANCE
