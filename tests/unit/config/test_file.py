"""The settings file."""

from __future__ import annotations

import json
import sys

import pytest

from infinity_emb.config.file import read_settings_file
from infinity_emb.config.resolve import resolve
from infinity_emb.config.sources import Given
from infinity_emb.errors import ConfigurationError

needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no TOML reader of its own")


@pytest.fixture
def write(tmp_path):
    def _write(content, name="settings.json"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return str(path)

    return _write


def resolved(path):
    return resolve({"config": Given((path,), "--config")}, {})


@needs_toml
def test_toml_with_a_table_for_each_model(write):
    path = write(
        """
        port = 8000
        dtype = "float32"
        device-id = [0, 1]

        [[models]]
        model-id = "a/one"

        [[models]]
        model_id = "b/two"
        batch_size = 8
        dtype = "float16"
        """,
        "settings.toml",
    )
    first, second = resolved(path).engine_args
    assert resolved(path).server_args.port == 8000
    assert (first.model_name_or_path, first.batch_size, first.dtype, first.device_id) == (
        "a/one",
        32,
        "float32",
        (0, 1),
    )
    assert (second.model_name_or_path, second.batch_size, second.dtype) == ("b/two", 8, "float16")


def test_json_with_lists(write):
    path = write({"model-id": ["a/one", "b/two"], "compile": [True, False], "port": [1, 2], "api-key": "sesame"})
    first, second = resolved(path).engine_args
    assert (first.compile, second.compile) == (True, False)
    assert resolved(path).server_args.ports == (1, 2)
    assert resolved(path).server_args.api_keys == ("sesame",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"batch-sise": 8}, "there is no option 'batch-sise'; did you mean 'batch-size'"),
        ({"batch-size": "many"}, "batch-size in .*: 'many' is not a whole number"),
        ({"host": 8}, "host in .*: 8 is no text"),
        ({"host": ["a", "b"]}, "is no text"),
        ({"batch-size": []}, "empty list"),
        ({"models": {"model-id": "a"}}, "must be a list of tables"),
        ({"models": [{"batch-size": 8}]}, "needs a model-id"),
        ({"models": [{"model-id": "a", "port": 1}]}, "for the whole server"),
        ({"models": [{"model-id": "a"}], "batch-size": [1, 2]}, None),
        (
            {"models": [{"model-id": "a", "batch-size": 1}, {"model-id": "b"}], "batch-size": [1, 2]},
            "must be one value",
        ),
        ([1], "one JSON object"),
        ("{", "is not valid JSON"),
    ],
)
def test_what_is_wrong_is_named(write, content, message):
    path = write(content)
    if message is None:
        with pytest.raises(ConfigurationError, match="has 2 values for 1 model"):
            resolved(path)
        return
    with pytest.raises(ConfigurationError, match=message):
        read_settings_file(path)


@needs_toml
def test_broken_toml_is_named(write):
    with pytest.raises(ConfigurationError, match="is not valid TOML"):
        read_settings_file(write("port = ", "settings.toml"))


def test_a_folder_cannot_be_read(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_settings_file(str(tmp_path))


def test_without_a_toml_reader_the_message_says_what_to_do(write, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ConfigurationError, match="pip install tomli"):
        read_settings_file(write("port = 1", "settings.toml"))
