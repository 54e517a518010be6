from __future__ import annotations

import json
from dataclasses import replace

import pytest

from infinity_emb.errors import CheckpointError, HubOfflineError
from infinity_emb.models.hub import resolve
from infinity_emb.models.hub.snapshot import cached_commit, missing_file

COMMIT = "0123456789abcdef0123456789abcdef01234567"
INDEX = "model.safetensors.index.json"


def _cache(settings, files, reference=COMMIT):
    repository = settings.hub_cache / "models--owner--name"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(reference)
    folder = repository / "snapshots" / COMMIT
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def test_a_cache_filled_by_another_program_is_used_offline(settings):
    folder = _cache(settings, {"config.json": "{}", "model.safetensors": "x"}, reference=f"{COMMIT}\n")
    found = resolve("owner/name", settings=replace(settings, offline=True))
    assert (found.path, found.revision) == (folder, COMMIT)


@pytest.mark.parametrize("reference", ["", "../../x", "main", "0123"])
def test_a_reference_that_is_no_commit_is_not_followed(settings, reference):
    _cache(settings, {"config.json": "{}"}, reference)
    assert cached_commit(settings.hub_cache, "owner/name", None) is None
    with pytest.raises(HubOfflineError, match="not in the cache"):
        resolve("owner/name", settings=replace(settings, offline=True))


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        ({"model.safetensors": ""}, "config.json"),
        ({"config.json": "{}"}, "model.safetensors"),
        (
            {
                "config.json": "{}",
                INDEX: json.dumps({"weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"}}),
                "model-1-of-2.safetensors": "",
            },
            "model-2-of-2.safetensors",
        ),
        (
            {
                "modules.json": '[{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}]',
                "model.safetensors": "",
                "2_Dense/config.json": "{}",
            },
            "2_Dense/model.safetensors",
        ),
    ],
)
def test_half_a_download_is_told_from_a_whole_one(settings, files, missing):
    assert missing_file(_cache(settings, files)) == missing


def test_pickled_weights_in_a_cache_are_refused_as_such(settings):
    _cache(settings, {"config.json": "{}", "pytorch_model.bin": ""})
    with pytest.raises(CheckpointError, match="pickle"):
        resolve("owner/name", settings=replace(settings, offline=True))


@pytest.mark.parametrize("content", ["", "[]", '{"weight_map": 3}'])
def test_a_broken_index_is_named(settings, content):
    folder = _cache(settings, {"config.json": "{}", INDEX: content, "model-1-of-1.safetensors": ""})
    with pytest.raises(CheckpointError, match="not an index"):
        missing_file(folder)
