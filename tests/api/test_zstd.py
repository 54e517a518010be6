from __future__ import annotations

import importlib

import pytest


@pytest.fixture
def zstandard():
    return pytest.importorskip("zstandard")


def test_zstd_bodies_are_read(served, zstandard):
    packed = zstandard.compress(b'{"input": "x"}')
    assert served.post_raw("/v1/embeddings", packed, content_encoding="zstd").status_code == 200


def test_a_zstd_bomb_is_413(serve, zstandard):
    bomb = zstandard.compress(b" " * 50_000_000)
    assert serve(max_body_bytes=100_000).post_raw("/embed", bomb, content_encoding="zstd").status_code == 413


@pytest.mark.parametrize("content", [b"nonsense", b"(\xb5/\xfd"])
def test_broken_zstd_is_refused(served, zstandard, content):
    assert zstandard
    assert served.post_raw("/v1/embeddings", content, content_encoding="zstd").status_code in {400, 422}


def test_without_a_library_the_refusal_says_which(served, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    answer = served.post_raw("/v1/embeddings", b"", content_encoding="zstd")
    assert answer.status_code == 415
    assert "pip install zstandard" in answer.json()["error"]["message"]
