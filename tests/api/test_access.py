from __future__ import annotations

import hashlib

import pytest

KEYS = ("first-key", "second-key")
OPEN = [
    "/health",
    "/ping",
    "/livez",
    "/readyz",
    "/startupz",
    "/v2/health/live",
    "/v2/health/ready",
    "/metrics",
    "/docs",
    "/openapi.json",
]


@pytest.fixture
def locked(serve):
    return serve(api_keys=KEYS)


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": "Bearer first-key"},
        {"authorization": "bearer second-key"},
        {"authorization": "Bearer Bearer first-key"},
        {"authorization": "first-key"},
        {"x-api-key": "second-key"},
        {"api-key": "first-key"},
        {"authorization": "Bearer wrong", "api-key": "first-key"},
    ],
)
def test_any_key_in_any_of_the_usual_headers_lets_in(locked, headers):
    assert locked.request("POST", "/v1/embeddings", json={"input": "x"}, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer None"},
        {"authorization": "Bearer first-key-and-more"},
        {"authorization": "Basic first-key"},
        {"x-api-key": "nope"},
    ],
)
def test_no_key_or_a_wrong_one_is_401(locked, headers):
    answer = locked.request("POST", "/v1/embeddings", json={"input": "x"}, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["detail"] == "Unauthorized"
    assert answer.json()["error"]["type"] == "authentication_error"


def test_the_key_is_checked_before_the_body_is_read(locked):
    assert locked.post_raw("/v1/embeddings", b"{").status_code == 401


@pytest.mark.parametrize("path", OPEN)
def test_probes_metrics_and_docs_are_open(locked, path):
    assert locked.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/models", "/v1/models", "/v1/models/fake/model", "/info"])
def test_models_and_info_are_closed_unless_opened(locked, serve, path):
    assert locked.get(path).status_code == 401
    opened = serve(api_keys=KEYS, public_routes=frozenset({"models", "info"}))
    assert opened.get(path).status_code == 200
    assert opened.get("/metrics").status_code == 401


@pytest.mark.parametrize("value", ["", "Bearer None", "Bearer undefined", "Bearer EMPTY", "nonsense"])
def test_without_keys_any_header_is_welcome(served, value):
    answer = served.request("POST", "/v1/embeddings", json={"input": "x"}, headers={"authorization": value})
    assert answer.status_code == 200


def test_cors_is_off_unless_asked_for(served, serve):
    headers = {"origin": "http://page.test", "access-control-request-method": "POST"}
    assert served.request("OPTIONS", "/v1/embeddings", headers=headers).status_code == 405
    opened = serve(permissive_cors=True)
    preflight = opened.request("OPTIONS", "/v1/embeddings", headers=headers)
    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-origin"] == "http://page.test"
    assert "POST" in preflight.headers["access-control-allow-methods"]
    plain = opened.request("POST", "/v1/embeddings", json={"input": "x"}, headers={"origin": "http://page.test"})
    assert plain.headers["access-control-allow-origin"] == "http://page.test"


def test_errors_carry_cors_headers_too(serve):
    opened = serve(permissive_cors=True, api_keys=KEYS)
    answer = opened.request("POST", "/v1/embeddings", json={"input": "x"}, headers={"origin": "http://page.test"})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == "http://page.test"


@pytest.mark.parametrize("path", ["/embeddings", "/api/embeddings", "/v1/embeddings"])
def test_native_routes_are_under_the_prefix_and_at_the_root(serve, path):
    assert serve(url_prefix="/api").post(path, {"input": "x"}).status_code == 200


def test_a_path_that_the_proxy_left_on_is_taken_away(serve):
    server = serve(proxy_root_path="/infinity")
    assert server.post("/infinity/v1/embeddings", {"input": "x"}).status_code == 200
    assert server.post("/v1/embeddings", {"input": "x"}).status_code == 200
    assert server.get("/").headers["location"] == "/infinity/docs"
    assert server.get("/openapi.json").json()["servers"] == [{"url": "/infinity"}]


def test_a_key_may_be_given_as_its_digest(serve):
    digest = hashlib.sha256(b"first-key").hexdigest()
    server = serve(api_keys=(f"sha256:{digest}",))
    statuses = {
        key: server.request("POST", "/embed", json={"inputs": "x"}, headers={"x-api-key": key}).status_code
        for key in ("first-key", digest, f"sha256:{digest}")
    }
    assert statuses == {"first-key": 200, digest: 401, f"sha256:{digest}": 401}
