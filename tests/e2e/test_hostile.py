"""Bodies that no client in its right mind sends, at the real server with a real tokenizer: an answer, and then another."""

from __future__ import annotations

import httpx
import pytest

LONG = 10_000_000
# Of what takes a while for each byte, less is enough: the time grows with the length and no faster.
SHORTER = 1_000_000

BODIES = {
    "a text of 10 MB": (b'{"input": "' + b"a " * (LONG // 2) + b'"}', {200}),
    "one word of 1 MB": (b'{"input": "' + b"a" * SHORTER + b'"}', {200}),
    "10 MB of a letter that is three bytes": (b'{"input": "' + "語".encode() * (LONG // 3) + b'"}', {200}),
    "10 MB of NUL": (b'{"input": "' + b"\\u0000" * (LONG // 6) + b'"}', {200, 400}),
    "1 MB of half characters": (b'{"input": "' + b"\\ud83d" * (SHORTER // 6) + b'"}', {200, 400}),
    "the same key twice": (b'{"input": "a", "input": ["b", "c"]}', {200, 422}),
    "a key a million times": (b"{" + b'"a":1,' * 1_000_000 + b'"input":"x"}', {200, 422}),
    "two million brackets": (b"[" * 2_000_000, {400, 422}),
    "brackets that close again": (b'{"input":' + b"[" * 100_000 + b"]" * 100_000 + b"}", {400, 422}),
    "brackets in an unknown field": (
        b'{"input":"x","y":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        {200, 422},
    ),
    "a number of a million digits": (b'{"input": "x", "dimensions": ' + b"9" * 1_000_000 + b"}", {400, 422}),
    "an exponent without end": (b'{"input": "x", "dimensions": 1e999999999}', {400, 422}),
    "2049 texts": (b'{"input": [' + b'"a",' * 2048 + b'"a"]}', {400}),
    "a million empty texts": (b'{"input": [' + b'"",' * 1_000_000 + b'""]}', {400}),
    "two hundred thousand token ids": (b'{"input": [' + b"1," * 200_000 + b"1]}", {200, 400}),
    "a token id beyond 64 bits": (b'{"input": [[99999999999999999999999999]]}', {400, 422}),
    "a name of 10 MB": (b'{"input": "x", "model": "' + b"m" * LONG + b'"}', {200, 400, 404}),
}


@pytest.mark.parametrize("name", BODIES)
def test_it_is_answered_and_the_next_request_is_too(minilm_server, name):
    content, allowed = BODIES[name]
    with httpx.Client(base_url=minilm_server.url, timeout=60) as client:
        answer = client.post("/v1/embeddings", content=content, headers={"content-type": "application/json"})
        assert answer.status_code in allowed, answer.text[:500]
        if answer.status_code != 200:
            assert 0 < len(answer.json()["error"]["message"]) < 2000
        assert client.post("/v1/embeddings", json={"input": "good morning"}).status_code == 200
        assert client.get("/health").status_code == 200
