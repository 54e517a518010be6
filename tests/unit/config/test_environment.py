"""Variables that name folders, and `MANAGER`."""

from __future__ import annotations

from pathlib import Path

import pytest

from infinity_emb.config.environment import folder_variable, own_cache, user_cache
from infinity_emb.config.environment_values import MANAGER
from infinity_emb.errors import ConfigurationError


def test_caches_lie_in_the_home_folder_unless_named(tmp_path):
    home = Path("~/.cache").expanduser()
    assert user_cache({}) == home
    assert own_cache({}) == home / "infinity_emb"
    assert own_cache({"XDG_CACHE_HOME": str(tmp_path)}) == tmp_path / "infinity_emb"
    assert own_cache({"HF_HOME": str(tmp_path)}) == tmp_path / ".infinity_cache"
    assert own_cache({"HF_HOME": "/a", "INFINITY_HOME": "/b"}) == Path("/b/.infinity_cache")


def test_a_folder_variable_may_use_the_home_sign_and_blank_ones_do_not_count():
    assert folder_variable({"A": "~/x", "B": "/y"}, "A", "B") == Path.home() / "x"
    assert folder_variable({"A": "  ", "B": "/y"}, "A", "B") == Path("/y")
    assert folder_variable({}, "A") is None


def test_manager_gives_lists_for_options_of_models(monkeypatch):
    monkeypatch.setenv("INFINITY_MODEL_ID", " a; b ;")
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
