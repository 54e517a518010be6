from __future__ import annotations

import subprocess
import sys

import pytest

from infinity_emb.errors import CheckpointError
from infinity_emb.models.hub import resolve


@pytest.mark.parametrize("entry", ["config.json", "modules.json"])
def test_a_folder_with_a_model_is_used_as_it_is(tmp_path, settings, entry):
    (tmp_path / entry).write_text("{}")
    found = resolve(str(tmp_path), settings=settings)
    assert (found.path, found.model_id, found.source, found.revision) == (
        tmp_path,
        str(tmp_path),
        "local folder",
        None,
    )
    assert resolve(str(tmp_path), settings=settings, revision="v1").source == "local folder (revision ignored)"


def test_a_relative_folder_wins_over_a_repository_of_that_name(tmp_path, settings, monkeypatch):
    folder = tmp_path / "owner" / "name"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert resolve("owner/name", settings=settings).path == folder
    assert resolve("./owner/name", settings=settings).path.samefile(folder)


def test_a_missing_folder_is_named_with_the_place_it_was_looked_up_from(tmp_path, settings, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match=r"no folder .*nothing.*looked up from") as caught:
        resolve("./nothing", settings=settings)
    assert str(tmp_path) in str(caught.value)


def test_a_folder_without_a_model_says_what_is_missing(tmp_path, settings):
    with pytest.raises(CheckpointError, match=r"neither config\.json nor modules\.json"):
        resolve(str(tmp_path), settings=settings)


def test_a_file_is_no_folder(tmp_path, settings):
    file = tmp_path / "model.safetensors"
    file.touch()
    with pytest.raises(CheckpointError, match="is a file"):
        resolve(str(file), settings=settings)


@pytest.mark.parametrize(
    ("model_id", "words"),
    [
        ("https://hub.example/owner/name", "is a URL"),
        ("", "empty"),
        ("  ", "empty"),
        ("what ever", "owner/name"),
        ("x" * 5000, "owner/name"),
        ("a\0b", "owner/name"),
    ],
)
def test_what_is_no_model_at_all_is_refused(settings, model_id, words):
    with pytest.raises(CheckpointError, match=words):
        resolve(model_id, settings=settings)


def test_a_local_folder_loads_no_web_client(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    program = """
import sys
from pathlib import Path
from infinity_emb.models.hub import HubSettings, resolve
resolve(sys.argv[1], settings=HubSettings.from_environment({"HF_HOME": sys.argv[1]}))
loaded = {"huggingface_hub", "httpx", "httpx2", "urllib.request", "http.client", "tqdm", "numpy"} & set(sys.modules)
raise SystemExit(str(loaded) if loaded else 0)
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, timeout=60)
