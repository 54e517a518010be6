"""`ServerArgs`: ports, prefixes and what excludes each other."""

from __future__ import annotations

import pytest

from infinity_emb.config.server_args import Listener, ServerArgs
from infinity_emb.errors import ConfigurationError


def test_one_port_is_for_all_models():
    assert ServerArgs(ports=(8000,)).listeners(3) == (Listener(8000),)


def test_one_port_a_model_serves_each_alone():
    assert ServerArgs(ports=(8000, 8001)).listeners(2) == (Listener(8000, 0), Listener(8001, 1))


def test_one_port_more_serves_all_on_the_first():
    assert ServerArgs(ports=(7997, 8000, 8001)).listeners(2) == (Listener(7997), Listener(8000, 0), Listener(8001, 1))
    assert ServerArgs(ports=(7997, 8000)).listeners(1) == (Listener(7997), Listener(8000, 0))


@pytest.mark.parametrize("model_count", [1, 4])
def test_any_other_number_of_ports_is_refused(model_count):
    with pytest.raises(ConfigurationError, match="--port is given 3 times"):
        ServerArgs(ports=(1, 2, 3)).listeners(model_count)


def test_a_port_named_twice_is_refused_unless_the_system_chooses():
    with pytest.raises(ConfigurationError, match="one port twice"):
        ServerArgs(ports=(8000, 8000))
    assert ServerArgs(ports=(0, 0)).ports == (0, 0)


def test_a_socket_and_several_ports_exclude_each_other():
    with pytest.raises(ConfigurationError, match="exclude each other"):
        ServerArgs(uds="/run/x.sock", ports=(1, 2))


def test_a_prefix_of_a_slash_is_none():
    assert ServerArgs(url_prefix="/").url_prefix == ""


def test_empty_keys_are_no_keys_and_keys_are_not_shown():
    assert ServerArgs(api_keys=("",)).api_keys == ()
    assert "sesame" not in repr(ServerArgs(api_keys=("sesame",)))


def test_fields_that_are_not_given_come_from_their_variable(monkeypatch):
    monkeypatch.setenv("INFINITY_PORT", "8000")
    monkeypatch.setenv("INFINITY_URL_PREFIX", "/v1")
    args = ServerArgs(url_prefix="/v2")
    assert (args.port, args.url_prefix) == (8000, "/v2")
