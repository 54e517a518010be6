"""Models that read texts and sounds give the vectors of transformers, from the same files, with its dice replaced."""

from __future__ import annotations

import numpy as np
import pytest

import measured
import tiny_sound
from forward import LIBRARIES, REAL_BACKENDS, compute, compute_alone, opened, spec_of
from infinity_emb.models.preprocess.media import MediaLimits
from infinity_emb.models.preprocess.sound import SoundPreprocessor
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec.joint import media_view
from infinity_emb.models.spec.sound import SPECTROGRAMS
from infinity_emb.types import Modality

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TOLERANCE = 1e-5
SECONDS = (0.001, 0.01, 0.3, 0.7, 1.0, 1.004, 1.01, 1.5, 4.2)
TEXTS = ["tea is hot", "", "Berlin, 2019!", "the quick brown fox " * 60, "peru <pad> lima", "你好 人工智能"]


@pytest.fixture(scope="module")
def sounds():
    return [tiny_sound.noise(seconds, seed=number) for number, seconds in enumerate(SECONDS)]


@pytest.fixture(scope="module", params=[False, True], ids=["cut", "fused"])
def checkpoint(request, tmp_path_factory, sounds):
    """A folder, and what transformers makes of it: spectrograms and vectors of sounds, vectors of texts."""
    folder = tiny_sound.tiny_clap(tmp_path_factory.mktemp("clap"), fusion=request.param)
    model = transformers.ClapModel.from_pretrained(folder, dtype=torch.float32).eval()
    extractor = transformers.ClapFeatureExtractor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    with pytest.MonkeyPatch.context() as dice, torch.inference_mode():
        dice.setattr("numpy.random.randint", lambda low, *_: low)
        dice.setattr("numpy.random.choice", lambda places: places[len(places) // 2])
        read = [extractor(one[:, 0], sampling_rate=tiny_sound.RATE, return_tensors="pt") for one in sounds]
        vectors = [model.get_audio_features(**one).pooler_output for one in read]
        tokens = tokenizer(TEXTS, padding=True, truncation=True, max_length=64, return_tensors="pt")
        texts = model.get_text_features(**tokens).pooler_output
    spectrograms = np.concatenate([one["input_features"].numpy() for one in read])
    return folder, spectrograms, torch.cat(vectors).numpy(), texts.numpy()


def features_of(folder, sounds):
    media = spec_of(folder).media_spec(Modality.AUDIO)
    reader = SoundPreprocessor(media, MediaLimits(pixels=1))
    return [reader.read(tiny_sound.encode(sound, subtype="FLOAT"), index) for index, sound in enumerate(sounds)]


def test_spectrograms_are_those_of_transformers(checkpoint, sounds):
    folder, spectrograms, _, _ = checkpoint
    found = np.stack([item.arrays[SPECTROGRAMS] for item in features_of(folder, sounds)])
    np.testing.assert_allclose(found, spectrograms, rtol=0, atol=TOLERANCE * np.abs(spectrograms).max())


@pytest.mark.parametrize("name", REAL_BACKENDS)
def test_vectors_of_sounds_and_texts_are_those_of_transformers(name, checkpoint, sounds):
    pytest.importorskip(LIBRARIES[name])
    folder, _, vectors, texts = checkpoint
    spec = spec_of(folder)
    read = features_of(folder, sounds)
    with opened(name, media_view(spec, Modality.AUDIO)) as backend:
        together, alone = compute(backend, read)["embedding"], compute_alone(backend, read)["embedding"]
    row = "sounds fused" if spec.config["audio_config"]["enable_fusion"] else "sounds cut"
    measured.note(measured.SOUNDS, row, name, max(abs(together - vectors).max(), abs(alone - vectors).max()))
    np.testing.assert_allclose(together, vectors, atol=TOLERANCE)
    np.testing.assert_allclose(alone, vectors, atol=TOLERANCE)
    features = TextPreprocessor(spec).texts(TEXTS)
    with opened(name, spec) as backend:
        together = compute(backend, features)["embedding"]
    measured.note(measured.SOUNDS, "texts", name, abs(together - texts).max())
    np.testing.assert_allclose(together, texts, atol=TOLERANCE)
    assert together.shape[1] == vectors.shape[1] == tiny_sound.DIM


def test_what_was_not_read_of_a_sound_is_reported(checkpoint, sounds):
    folder, _, _, _ = checkpoint
    fusion = spec_of(folder).config["audio_config"]["enable_fusion"]
    cut = [item.truncated for item in features_of(folder, sounds)]
    assert cut == [seconds > 1 and not fusion for seconds in SECONDS]
