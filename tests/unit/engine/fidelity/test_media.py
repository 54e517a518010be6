"""What reads images and sounds is compared with its float32 reference as texts are, in a format of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tiny_sound
from forward import spec_of
from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.backends.openvino import OpenVinoBackend
from infinity_emb.engine.fidelity import check
from infinity_emb.engine.fidelity.media_probes import media_features
from infinity_emb.errors import LoadError
from infinity_emb.metrics import FIDELITY, GAUGES
from infinity_emb.models.preprocess.media import MediaLimits, make_media_preprocessor
from infinity_emb.scheduler.collate import Collator
from infinity_emb.types import Dtype, Modality
from tiny_joint import tiny_clip
from tiny_siglip import tiny_siglip

KINDS = {Modality.AUDIO: tiny_sound.tiny_clap, Modality.IMAGE: tiny_clip}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {modality: build(tmp_path_factory.mktemp(str(modality))) for modality, build in KINDS.items()}


@pytest.fixture
def fast(monkeypatch):
    """This machine is said to compute bfloat16 faster than float32."""
    monkeypatch.setattr(OpenVinoBackend, "fast_dtypes", classmethod(lambda cls, options: (Dtype.BFLOAT16,)))  # noqa: ARG005


def card_of(folder, cache, **options):
    chosen = {"engine": "openvino", "threads": 1, "model_warmup": False, "cache_folder": str(cache), **options}
    model = AsyncEmbeddingEngine.from_args(EngineArgs(model_name_or_path=str(folder), **chosen))
    model.close()
    return model.card


def formats(card, modality):
    """Number formats of texts and of the modality."""
    return card.dtype, card.extra[f"{modality}_dtype"]


@pytest.mark.parametrize("modality", KINDS)
def test_figures_of_images_and_sounds_are_on_the_card_and_are_gauges(modality, folders, tmp_path):
    card = card_of(folders[modality], tmp_path)
    for prefix in ("", f"{modality}_"):
        assert card.extra[f"{prefix}fidelity_min_cosine"] > 0.99999999
        assert 0 < card.extra[f"{prefix}fidelity_max_abs_error"] < 1e-5
        assert card.extra[f"{prefix}fidelity_top10_agreement"] == 1.0
        assert {f"{prefix}fidelity_min_cosine", f"{prefix}fidelity_top10_agreement"} <= set(FIDELITY)
    assert f"infinity_{modality}_fidelity_max_abs_error" in GAUGES


def test_siglip_passes(tmp_path):
    card = card_of(tiny_siglip(tmp_path / "model"), tmp_path / "cache")
    assert min(card.extra["fidelity_min_cosine"], card.extra["image_fidelity_min_cosine"]) > 0.99999999


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("modality", KINDS)
def test_a_faster_format_is_taken_for_images_and_sounds_where_it_passes(modality, folders, tmp_path):
    assert formats(card_of(folders[modality], tmp_path, fidelity=0.01), modality) == ("bfloat16", "bfloat16")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
@pytest.mark.parametrize("modality", KINDS)
def test_only_what_fails_in_a_faster_format_is_computed_in_float32(modality, dtype, folders, tmp_path, monkeypatch):
    right = check.measure

    def measure(backend, task, items, reference):
        found = right(backend, task, items, reference)
        fails = items[0].arrays is not None and backend.report.dtype is Dtype.BFLOAT16
        return replace(found, min_cosine=0.5) if fails else replace(found, min_cosine=1.0, max_relative_error=0.0)

    everywhere = card_of(folders[modality], tmp_path / "a", dtype="bfloat16", fidelity=0)
    monkeypatch.setattr(check, "measure", measure)
    card = card_of(folders[modality], tmp_path / "b", dtype=dtype)
    assert formats(card, modality) == ("bfloat16", "float32")
    assert formats(everywhere, modality) == ("bfloat16", "bfloat16")
    assert card.extra["fingerprint"] != everywhere.extra["fingerprint"]


@pytest.mark.usefixtures("fast")
def test_without_a_check_images_and_sounds_are_float32_unless_a_format_is_named(folders, tmp_path):
    card = card_of(folders[Modality.IMAGE], tmp_path, fidelity=0)
    assert formats(card, Modality.IMAGE)[1] == "float32"
    assert "image_fidelity_min_cosine" not in card.extra


@pytest.mark.parametrize("modality", KINDS)
def test_items_mixed_up_in_a_batch_are_not_served(modality, folders, tmp_path, monkeypatch):
    stacked = Collator._stacked

    def swapped(self, features):
        arrays = stacked(self, features)
        return {name: array[::-1].copy() for name, array in arrays.items()}

    monkeypatch.setattr(Collator, "_stacked", swapped)
    with pytest.raises(LoadError, match=rf"\({modality}\) gives wrong results here"):
        card_of(folders[modality], tmp_path)


@pytest.mark.parametrize("modality", KINDS)
def test_the_probes_are_read_and_differ_from_each_other(modality, folders):
    (media,) = spec_of(folders[modality]).media
    made = media_features(modality, make_media_preprocessor(media, MediaLimits(pixels=1 << 20)))
    assert len(made) == 12
    rows = np.stack([np.concatenate([array.ravel() for array in item.arrays.values()]) for item in made])
    assert np.isfinite(rows).all()
    away = np.abs(rows[:, None] - rows[None]).max(axis=2)
    assert away[~np.eye(len(rows), dtype=bool)].min() > 0.1
