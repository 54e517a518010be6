from __future__ import annotations

from pathlib import Path

import pytest

from infinity_emb.models.hub import HubSettings


def test_hf_home_places_both_caches():
    settings = HubSettings.from_environment({"HF_HOME": "/data"})
    assert settings.hub_cache == Path("/data/hub")
    assert settings.cache_folder == Path("/data/.infinity_cache")


def test_more_specific_variables_win():
    variables = {"HF_HOME": "/data", "HF_HUB_CACHE": "/hub", "HUGGINGFACE_HUB_CACHE": "/old", "INFINITY_HOME": "/own"}
    settings = HubSettings.from_environment(variables)
    assert settings.hub_cache == Path("/hub")
    assert settings.cache_folder == Path("/own/.infinity_cache")


def test_without_variables_the_user_cache_is_used():
    settings = HubSettings.from_environment({})
    assert settings.hub_cache == Path.home() / ".cache" / "huggingface" / "hub"
    assert settings.cache_folder.name == "infinity_emb"
    assert HubSettings.from_environment({"XDG_CACHE_HOME": "/x"}).hub_cache == Path("/x/huggingface/hub")


def test_a_tilde_is_the_home_folder():
    assert HubSettings.from_environment({"HF_HUB_CACHE": "~/models"}).hub_cache == Path.home() / "models"


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
@pytest.mark.parametrize(("value", "offline"), [("1", True), ("on", True), ("True", True), ("0", False), ("", False)])
def test_either_switch_means_offline(name, value, offline):
    assert HubSettings.from_environment({name: value}).offline is offline


def test_endpoint_loses_its_final_slash():
    assert HubSettings.from_environment({"HF_ENDPOINT": "https://mirror.example/"}).endpoint == "https://mirror.example"


def test_token_names_in_their_order():
    variables = {"HF_API_TOKEN": "c", "HUGGING_FACE_HUB_TOKEN": "b"}
    assert HubSettings.from_environment(variables).token == "b"
    assert HubSettings.from_environment({**variables, "HF_TOKEN": "a"}).token == "a"
    assert HubSettings.from_environment({"HF_TOKEN": "a", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}).token is None


def test_secrets_are_not_in_the_printed_form():
    variables = {"HF_TOKEN": "hf_secret", "PIP_INDEX_URL": "https://me:pass@index.example/simple"}
    text = repr(HubSettings.from_environment(variables))
    assert "hf_secret" not in text
    assert "pass" not in text


@pytest.mark.parametrize(("value", "seconds"), [("3", 3.0), ("", 10.0), ("soon", 10.0), ("-1", 10.0)])
def test_timeout_is_read_or_default(value, seconds):
    assert HubSettings.from_environment({"HF_HUB_ETAG_TIMEOUT": value}).timeout_s == seconds
