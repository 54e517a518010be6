from __future__ import annotations

import gzip
import json
import logging
import zlib

import pytest

from infinity_emb.errors import BackendError, DeadlineExceededError, NotReadyError, OutOfMemoryError, OverloadedError

BODY = {"input": "x"}


def test_every_answer_carries_a_request_id(served):
    own = served.request("POST", "/embeddings", json=BODY, headers={"x-request-id": "mine-1"})
    assert own.headers["x-request-id"] == "mine-1"
    new = {served.get(path).headers["x-request-id"] for path in ("/health", "/nope", "/models", "/docs")}
    assert len(new) == 4


@pytest.mark.parametrize("given", ["a" * 200, "line\tbreak", "ü"])
def test_a_request_id_that_does_not_fit_a_header_is_replaced(served, given):
    answer = served.request("GET", "/health", headers={"x-request-id": given.encode("latin-1")})
    assert answer.headers["x-request-id"] != given


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (OverloadedError("full", retry_after_s=3), 429, "overloaded"),
        (NotReadyError("down"), 503, "not_ready"),
        (OutOfMemoryError("too long", retry_after_s=5), 503, "out_of_memory"),
        (DeadlineExceededError("late"), 504, "deadline_exceeded"),
        (BackendError("bad weights", item_index=2), 500, "backend_error"),
    ],
)
def test_engine_errors_have_their_status_and_body(served, error, status, code):
    served.engine.error = error
    answer = served.post("/v1/embeddings", BODY)
    body = answer.json()
    assert answer.status_code == status
    assert body["error"]["code"] == code
    assert body["error"]["message"] == body["message"] == body["detail"] == str(error)
    if status in {429, 503}:
        assert answer.headers["retry-after"].isdigit()
    if status == 500:
        assert answer.headers["x-should-retry"] == "false"


def test_overload_says_when_to_come_back(served):
    served.engine.error = OverloadedError("full", retry_after_s=7)
    assert served.post("/v1/embeddings", BODY).headers["retry-after"] == "7"


def test_a_bug_is_500_with_the_request_id_and_nothing_of_the_inside(served, caplog):
    served.engine.error = RuntimeError("/secret/path/file.py is broken")
    with caplog.at_level(logging.ERROR, "infinity_emb"):
        answer = served.post("/v1/embeddings", BODY)
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.json()["error"]["message"]
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "secret" in caplog.text
    served.engine.error = None
    assert served.post("/v1/embeddings", BODY).status_code == 200


def test_wrong_form_is_422_with_the_list_that_infinitys_client_parses(served):
    body = served.post("/embeddings", {"input": ["a", 1.5]}).json()
    (problem,) = body["detail"]
    assert problem["loc"] == ["body", "input", 1]
    assert {"msg", "type"} <= set(problem)
    assert body["error"]["param"] == "input"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   ",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b'{"input": NaN}',
        b'{"input": "x", "dimensions": Infinity}',
        b'{"input": "\xff"}',
        b'{"input": "x"} trailing',
        b'{"input": []}',
        b'{"input": [[]]}',
        b'{"input": {}}',
        b'{"input": [null]}',
        b'{"input": ["a", 1]}',
        b'{"input": [1, [2]]}',
        b'{"input": [{}]}',
        b'{"input": [true]}',
        b'{"input": "x", "modality": "smell"}',
        b'{"input": "x", "truncate": "sometimes"}',
        b'{"input": "x", "truncation_side": "up"}',
        b'{"input": "x", "embedding_dtype": "int4"}',
        b'{"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"other":' + b"[" * 100_000 + b"]" * 100_000 + b', "input": "x"}',
        b'{"input": "x", "dimensions": 1.5}',
        b'{"messages": []}',
    ],
)
def test_a_wrong_form_is_422_and_the_next_request_works(served, content):
    answer = served.post_raw("/v1/embeddings", content)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["message"]
    assert served.post("/v1/embeddings", BODY).status_code == 200


@pytest.mark.parametrize(
    "content",
    [
        b'{"input": "x", "input": "y"}',
        b'{"input": "x", "surprise": {"deep": [1, 2]}}',
        b'{"input": "x", "dimensions": null, "user": null, "encoding_format": null, "model": null, "prompt": null}',
        b'{"input": ["ok text", "bad \\ud83d tail", "nul \\u0000 byte"]}',
        b'{"input": "back\\\\ud83d slash and pair \\ud83d\\ude00"}',
    ],
)
def test_odd_but_legal_bodies_are_served(served, content):
    assert served.post_raw("/v1/embeddings", content).status_code == 200


def test_half_a_surrogate_pair_is_read_as_the_replacement_character(served):
    served.post_raw("/v1/embeddings", b'{"input": ["a \\ud83d b", "\\\\ud83d", "\\ud83d\\ude00"]}')
    assert served.engine.calls[-1][1] == ["a \ufffd b", "\\ud83d", "😀"]


def test_too_many_items_name_the_limit(served):
    served.engine.max_client_batch_size = 4
    answer = served.post("/v1/embeddings", {"input": ["x"] * 5})
    assert answer.status_code == 400
    assert "At most 4" in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/nope", "/v1", "/v1/v2/rerank", "/docs/../secret", "/v1/models/"])
def test_an_unknown_path_is_404(served, path):
    assert served.request("POST", path, json={}).status_code in {404, 405, 307}
    assert "x-request-id" in served.get("/nope").headers


@pytest.mark.parametrize(
    ("method", "path", "allow"), [("GET", "/v1/embeddings", "POST"), ("DELETE", "/models", "GET, HEAD")]
)
def test_the_wrong_method_is_405_and_names_the_right_ones(served, method, path, allow):
    answer = served.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allow


def test_head_answers_like_get_without_a_body(served):
    answer = served.request("HEAD", "/health")
    assert answer.status_code == 200
    assert answer.content == b""


def test_a_trailing_slash_is_redirected_with_method_and_query_kept(served):
    answer = served.request("POST", "/v1/embeddings/?a=b", json=BODY)
    assert answer.status_code == 307
    assert answer.headers["location"] == "/v1/embeddings?a=b"


# Sizes and encodings of bodies


def test_a_body_over_the_limit_is_413_and_states_it(serve):
    server = serve(max_body_bytes=1000)
    answer = server.post("/v1/embeddings", {"input": "x" * 2000})
    assert answer.status_code == 413
    assert "1,000 bytes" in answer.json()["error"]["message"]


def test_a_body_without_a_length_is_stopped_at_the_limit(serve):
    server = serve(max_body_bytes=1000)
    sent = []

    async def pieces():
        for _ in range(1000):
            sent.append(1)
            yield b" " * 100

    answer = server.run(lambda client: client.post("/v1/embeddings", content=pieces()))
    assert answer.status_code == 413
    assert len(sent) < 20


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "GZIP"])
def test_compressed_bodies_are_read(served, encoding):
    raw = json.dumps(BODY).encode()
    packed = zlib.compress(raw) if encoding == "deflate" else gzip.compress(raw, mtime=0)
    assert served.post_raw("/v1/embeddings", packed, content_encoding=encoding).status_code == 200


def test_a_bomb_is_413_without_being_unpacked(serve):
    server = serve(max_body_bytes=100_000)
    bomb = gzip.compress(b" " * 50_000_000, mtime=0)
    assert len(bomb) < 100_000
    assert server.post_raw("/v1/embeddings", bomb, content_encoding="gzip").status_code == 413


@pytest.mark.parametrize("content", [b"not gzip", gzip.compress(b"{}", mtime=0)[:-12], b"\x1f\x8b"])
def test_broken_gzip_is_400(served, content):
    assert served.post_raw("/v1/embeddings", content, content_encoding="gzip").status_code == 400


def test_an_unknown_encoding_is_415_and_names_the_known_ones(served):
    answer = served.post_raw("/v1/embeddings", b"{}", content_encoding="br")
    assert answer.status_code == 415
    assert "gzip" in answer.json()["error"]["message"]


def test_several_gzip_members_are_one_body(served):
    packed = gzip.compress(b'{"input":', mtime=0) + gzip.compress(b' "x"}')
    assert served.post_raw("/v1/embeddings", packed, content_encoding="gzip").status_code == 200
