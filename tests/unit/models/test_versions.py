"""Compared with the standard library's own reader."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from infinity_emb.models.versions import library_version


@pytest.mark.parametrize(
    "name", ["infinity_emb", "numpy", "openvino", "onnxruntime", "tokenizers", "pytest_asyncio", "msgspec"]
)
def test_a_version_is_the_one_that_the_distribution_names(name):
    try:
        expected = f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        expected = f"{name} not installed"
    assert library_version(name) == expected


def test_what_is_not_there_is_said():
    assert library_version("no_such_library") == "no_such_library not installed"


def test_the_first_folder_of_the_search_path_wins(tmp_path, monkeypatch):
    for folder, entry in (("first", "Some.Thing-2.0rc1.dist-info"), ("second", "some_thing-1.0-py3.11.egg-info")):
        (tmp_path / folder / entry).mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), str(tmp_path / "second"), *sys.path])
    assert library_version("some_thing") == "some_thing 1.0"
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), *sys.path])
    assert library_version("some_thing") == "some_thing 2.0rc1"
