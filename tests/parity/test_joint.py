"""Models that read texts and images give the vectors of transformers, from the same files and pictures."""

from __future__ import annotations

import io

import numpy as np
import pytest

import measured
from forward import LIBRARIES, REAL_BACKENDS, compute, compute_alone, opened, spec_of
from infinity_emb.models.preprocess.image import ImagePreprocessor
from infinity_emb.models.preprocess.media import MediaLimits
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec.joint import media_view
from infinity_emb.types import Modality
from tiny_joint import DIM, END, split_tokenizer, tiny_clip

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
image_library = pytest.importorskip("PIL.Image")

TOLERANCE = 1e-5
SIZES = {"wide": (100, 40), "tall": (41, 97), "square": (32, 32), "tiny": (3, 5), "large": (301, 200)}
TEXTS = [
    "tea is hot",
    "",
    "Berlin, 2019!",
    "the quick brown fox " * 60,
    f"peru {END} lima",
    "你好 人工智能",
    "  a\n\tb ",
]
CHOICES = {
    "as published": {},
    "from before the end had a number": {"old_end": True},
    "of today": {"layout": "modules", "activation": "gelu"},
    "of sentence-transformers": {"layout": "legacy"},
    "in half precision": {"dtype": "float16"},
}


# Every backend reads a checkpoint as it is published; what else there is of them concerns the graph and the reader.
PLACES = [(name, "as published") for name in REAL_BACKENDS] + [("onnxruntime", choice) for choice in CHOICES]


@pytest.fixture(scope="module")
def pictures():
    chance = np.random.default_rng(5)
    made = [
        image_library.fromarray(chance.integers(0, 256, (height, width, 3), dtype=np.uint8))
        for width, height in SIZES.values()
    ]
    return [*made, made[0].convert("L")]


def png(picture) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def reference(folder, pictures):
    """Vectors of transformers, made unit length: images, texts."""
    inside = folder / "0_CLIPModel" if (folder / "0_CLIPModel").is_dir() else folder
    model = transformers.CLIPModel.from_pretrained(inside, dtype=torch.float32).eval()
    processor = transformers.AutoImageProcessor.from_pretrained(inside, backend="pil")
    tokenizer = transformers.AutoTokenizer.from_pretrained(inside)
    tokens = tokenizer(TEXTS, padding=True, truncation=True, max_length=77, return_tensors="pt")
    with torch.inference_mode():
        images = model.get_image_features(**processor(pictures, return_tensors="pt")).pooler_output
        texts = model.get_text_features(**tokens).pooler_output
    return [torch.nn.functional.normalize(vectors, dim=-1).numpy() for vectors in (images, texts)]


def errors_of(name, view, items, wanted):
    """Largest differences of the vectors computed together and alone."""
    with opened(name, view) as backend:
        found = compute(backend, items)["embedding"], compute_alone(backend, items)["embedding"]
    assert all(vectors.shape == wanted.shape == (len(items), DIM) for vectors in found)
    return [float(abs(vectors - wanted).max()) for vectors in found]


@pytest.mark.parametrize(("name", "choice"), dict.fromkeys(PLACES))
def test_vectors_of_pictures_and_texts_are_those_of_transformers(name, choice, pictures, tmp_path):
    pytest.importorskip(LIBRARIES[name])
    folder = tiny_clip(tmp_path / "model", **CHOICES[choice])
    spec = spec_of(folder)
    view = media_view(spec, Modality.IMAGE)
    images, texts = reference(folder, pictures)
    reader = ImagePreprocessor(spec.media_spec(Modality.IMAGE), MediaLimits(pixels=1 << 20))
    read = [reader.read(png(picture), index) for index, picture in enumerate(pictures)]
    errors = errors_of(name, view, read, images)
    features = TextPreprocessor(spec).texts(TEXTS)
    text_errors = errors_of(name, spec, features, texts)
    if choice == "as published":
        measured.note(measured.JOINT, "pictures", name, max(errors))
        measured.note(measured.JOINT, "texts", name, max(text_errors))
    assert max(errors + text_errors) <= TOLERANCE


def test_the_two_files_of_the_first_repositories_give_the_same_tokens(tmp_path):
    folder = tiny_clip(tmp_path / "model")
    spec = spec_of(folder)
    before = [list(item.token_ids) for item in TextPreprocessor(spec).texts(TEXTS)]
    split_tokenizer(folder)
    after = [list(item.token_ids) for item in TextPreprocessor(spec_of(folder)).texts(TEXTS)]
    reference = transformers.AutoTokenizer.from_pretrained(folder)
    assert after == before == [reference(text, truncation=True, max_length=77).input_ids for text in TEXTS]
