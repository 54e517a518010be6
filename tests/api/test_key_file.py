"""Keys from a file: reloaded without restart, each with its rate, its models and its rights."""

from __future__ import annotations

import hashlib
import logging

import pytest

from api.fake_engine import FakeEngine
from infinity_emb.errors import ConfigurationError
from infinity_emb.server import access_file, access_rate
from infinity_emb.server.access_grant import Grant, digest_of, read_grants
from infinity_emb.server.errors import RateLimitedError

BODY = {"input": "x"}


def status(server, key: str, path: str = "/v1/embeddings", **body) -> int:
    return server.request("POST", path, json={**BODY, **body}, headers={"x-api-key": key}).status_code


@pytest.fixture
def key_file(tmp_path, monkeypatch):
    monkeypatch.setattr(access_file, "LOOK_EVERY_S", 0.0)
    path = tmp_path / "keys"
    path.write_text("alpha name=team-a\n")
    return path


def replace(path, text: str) -> None:
    """As editors and secret volumes do it: another file under the same name."""
    other = path.with_name("next")
    other.write_text(text)
    other.replace(path)


def test_a_change_of_the_file_counts_from_the_next_request_on(serve, key_file):
    server = serve(api_key_file=str(key_file))
    assert (status(server, "alpha"), status(server, "beta")) == (200, 401)
    replace(key_file, "beta\n")
    assert (status(server, "alpha"), status(server, "beta")) == (401, 200)


@pytest.mark.parametrize("broken", ["beta nonsense=1\n", None], ids=["wrong-line", "gone"])
def test_a_file_that_breaks_later_leaves_the_keys_as_they_were(serve, key_file, broken, caplog):
    server = serve(api_key_file=str(key_file))
    if broken is None:
        key_file.unlink()
    else:
        replace(key_file, broken)
    assert (status(server, "alpha"), status(server, "beta")) == (200, 401)
    assert "stay as they were" in caplog.text
    assert "beta" not in caplog.text


def test_an_empty_file_lets_nobody_in(serve, key_file):
    key_file.write_text("# nobody yet\n")
    assert status(serve(api_key_file=str(key_file)), "alpha") == 401


def test_keys_of_file_and_option_work_side_by_side(serve, key_file):
    server = serve(api_key_file=str(key_file), api_keys=("gamma",))
    assert [status(server, key) for key in ("alpha", "gamma", "delta")] == [200, 200, 401]


def test_a_key_in_the_file_may_be_a_digest(serve, key_file):
    digest = hashlib.sha256(b"alpha").hexdigest()
    key_file.write_text(f"sha256:{digest}\n")
    server = serve(api_key_file=str(key_file))
    assert [status(server, key) for key in ("alpha", digest, f"sha256:{digest}")] == [200, 401, 401]


def test_a_key_is_limited_to_its_models(serve, key_file):
    key_file.write_text("alpha models=one\nbeta models=one,two\ngamma\n")
    server = serve(FakeEngine(name="one"), FakeEngine(name="two"), api_key_file=str(key_file))
    found = {key: [status(server, key, model=name) for name in ("one", "two")] for key in ("alpha", "beta", "gamma")}
    assert found == {"alpha": [200, 403], "beta": [200, 200], "gamma": [200, 200]}
    refused = server.request("POST", "/v1/embeddings", json={**BODY, "model": "two"}, headers={"x-api-key": "alpha"})
    assert "'two'" in refused.json()["error"]["message"]
    assert status(server, "gamma", model="two") == 200  # the limit of one request does not stick to the next


def test_a_key_is_limited_to_its_rate_and_others_are_not(serve, key_file):
    key_file.write_text("alpha per-minute=3\nbeta per-minute=1000\n")
    server = serve(api_key_file=str(key_file))
    assert [status(server, "alpha") for _ in range(5)] == [200, 200, 200, 429, 429]
    assert status(server, "beta") == 200
    refused = server.request("POST", "/v1/embeddings", json=BODY, headers={"x-api-key": "alpha"})
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.json()["error"]["code"] == "rate_limited"


def test_the_count_survives_a_reload(serve, key_file):
    key_file.write_text("alpha per-minute=2\n")
    server = serve(api_key_file=str(key_file))
    assert status(server, "alpha") == 200
    replace(key_file, "alpha per-minute=2 name=renamed\n")
    assert [status(server, "alpha") for _ in range(2)] == [200, 429]


def test_the_rate_is_that_of_any_minute():
    rate = access_rate.RateLimit(2)
    rate.take(0.0)
    rate.take(50.0)
    with pytest.raises(RateLimitedError) as caught:
        rate.take(59.5)
    assert caught.value.retry_after_s == 1
    rate.take(60.0)
    with pytest.raises(RateLimitedError) as caught:
        rate.take(61.0)
    assert caught.value.retry_after_s == 49


def test_a_line_says_all_there_is():
    (grant,) = read_grants("  key-1 name=a per-minute=5 models=x,y operator # note\n\n")
    assert grant == Grant(digest_of("key-1"), "a", 5, frozenset({"x", "y"}), operator=True)


@pytest.mark.parametrize(
    "line",
    [
        "secret-key per-minute=0",
        "secret-key per-minute=many",
        "secret-key models=",
        "secret-key root",
        "secret-key name=",
    ],
)
def test_a_wrong_line_is_named_without_its_key(line):
    with pytest.raises(ConfigurationError) as caught:
        read_grants(f"# first\n{line}\n")
    assert "Line 2" in caught.value.message
    assert "secret-key" not in caught.value.message


def test_one_key_twice_is_wrong():
    with pytest.raises(ConfigurationError):
        read_grants("same\nsame operator\n")


def test_a_file_that_cannot_be_read_stops_the_start(serve, tmp_path):
    with pytest.raises(ConfigurationError):
        serve(api_key_file=str(tmp_path / "nothing"))


def test_the_log_names_the_key_and_never_shows_it(serve, key_file, caplog):
    caplog.set_level(logging.DEBUG)
    server = serve(api_key_file=str(key_file), access_log=True)
    assert status(server, "alpha") == 200
    assert status(server, "wrong-key") == 401
    lines = [record for record in caplog.records if hasattr(record, "request_id")]
    assert [(record.status, record.key) for record in lines] == [(200, "team-a"), (401, "")]
    assert not any("alpha" in str(vars(record)) or "wrong-key" in str(vars(record)) for record in caplog.records)
