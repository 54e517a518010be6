"""Variables that concern model files, and `MANAGER`."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinity_emb.config.environment import hub_environment
from infinity_emb.config.environment_values import MANAGER
from infinity_emb.errors import ConfigurationError


def test_defaults_lie_in_the_home_folder():
    said = hub_environment({})
    home = Path("~/.cache").expanduser()
    assert (said.hf_home, said.hub_cache) == (home / "huggingface", home / "huggingface" / "hub")
    assert said.infinity_cache == home / "infinity_emb"
    assert said.endpoint == "https://huggingface.co"
    assert not said.offline
    assert said.package_index is None


def test_folders_follow_each_other(tmp_path):
    assert hub_environment({"XDG_CACHE_HOME": str(tmp_path)}).hub_cache == tmp_path / "huggingface" / "hub"
    assert hub_environment({"HF_HOME": str(tmp_path)}).hub_cache == tmp_path / "hub"
    assert hub_environment({"HF_HOME": "/a", "HF_HUB_CACHE": str(tmp_path)}).hub_cache == tmp_path
    assert hub_environment({"HF_HOME": str(tmp_path)}).infinity_cache == tmp_path / ".infinity_cache"
    assert hub_environment({"HF_HOME": "/a", "INFINITY_HOME": "/b"}).infinity_cache == Path("/b/.infinity_cache")


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.parametrize(("word", "offline"), [("1", True), ("TRUE", True), ("0", False), ("", False)])
def test_offline(name, word, offline):
    assert hub_environment({name: word}).offline is offline


def test_token_from_the_variable_before_the_file(tmp_path):
    (tmp_path / "token").write_text("from-file\n")
    assert hub_environment({"HF_HOME": str(tmp_path)}).token == "from-file"
    assert hub_environment({"HF_HOME": str(tmp_path), "HF_TOKEN": "from-variable"}).token == "from-variable"
    assert hub_environment({"HF_HOME": str(tmp_path / "none")}).token is None


def test_the_token_is_not_shown():
    assert "secret" not in repr(hub_environment({"HF_TOKEN": "secret", "PIP_INDEX_URL": "http://user:secret@host"}))


def test_endpoint_loses_its_last_slash():
    assert hub_environment({"HF_ENDPOINT": "http://localhost:1/"}).endpoint == "http://localhost:1"


def test_manager_gives_lists_for_options_of_models(monkeypatch):
    monkeypatch.setenv("INFINITY_MODEL_ID", "a;b;")
    monkeypatch.setenv("INFINITY_DEVICE_ID", "0,1")
    assert MANAGER.model_id == ["a", "b"]
    assert MANAGER.batch_size == [32]
    assert MANAGER.revision == [""]
    assert MANAGER.device_id == ["0,1"]
    assert MANAGER.vector_disk_cache == [False]
    assert MANAGER.model_warmup == [True]


def test_manager_gives_single_values_for_options_of_the_server(monkeypatch):
    monkeypatch.setenv("INFINITY_PORT", "8000")
    assert (MANAGER.port, MANAGER.host, MANAGER.api_key, MANAGER.url_prefix) == (8000, "0.0.0.0", "", "")
    assert MANAGER.log_level == "info"


def test_manager_refuses_wrong_values_and_unknown_names(monkeypatch):
    monkeypatch.setenv("INFINITY_PORT", "http")
    with pytest.raises(ConfigurationError, match="INFINITY_PORT"):
        _ = MANAGER.port
    with pytest.raises(AttributeError, match="no option 'colour'"):
        _ = MANAGER.colour
