"""`data:` URIs: every spelling that means the same is read, everything else is refused by its own error."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stub_network import PICTURE

from infinity_emb.engine.media import MediaRefusedError, Refusal
from infinity_emb.engine.media.data_uri import read_data_uri

CONTENT = base64.b64encode(PICTURE).decode()
LIMIT = 10_000


@pytest.mark.parametrize(
    "uri",
    [
        f"data:image/png;base64,{CONTENT}",
        f"DATA:IMAGE/PNG;BASE64,{CONTENT}",
        f"data:image/png;charset=utf-8;base64,{CONTENT}",
        f"data:image/png; base64,{CONTENT}",
        f"data:;base64,{CONTENT}",
        f"data:application/octet-stream;base64,{CONTENT}",
        "data:image/png;base64," + "\r\n".join(CONTENT[i : i + 76] for i in range(0, len(CONTENT), 76)),
        f"data:image/png;base64,{CONTENT.rstrip('=')}",
        f"data:image/png;base64,{CONTENT.replace('+', '%2B').replace('/', '%2f')}",
    ],
)
def test_spellings_of_one_picture(uri):
    assert read_data_uri(uri, "image", LIMIT).content == PICTURE


@pytest.mark.parametrize(
    ("uri", "refusal"),
    [
        ("data:image/png;base64,not!!base64", Refusal.DATA_URI),
        ("data:image/png;base64,A", Refusal.DATA_URI),
        ("data:image/png;base64,", Refusal.DATA_URI),
        ("data:image/png;base64,äöü", Refusal.DATA_URI),
        ("data:image/png;base64,AA==AA", Refusal.DATA_URI),
        ("data:image/png,abc", Refusal.DATA_URI),
        ("data:image/png;base64", Refusal.DATA_URI),
        ("data:", Refusal.DATA_URI),
        ("data:" + "x" * 1000 + ";base64,AAAA", Refusal.DATA_URI),
        ("data:text/plain;base64,aGVsbG8=", Refusal.CONTENT_TYPE),
        ("data:image/svg+xml;base64,aGVsbG8=", Refusal.CONTENT_TYPE),
        ("data:audio/wav;base64,aGVsbG8=", Refusal.CONTENT_TYPE),
        ("data:image/png;base64," + "A" * 20_000, Refusal.TOO_LARGE),
        ("data:image/png;base64," + base64.b64encode(bytes(LIMIT + 1)).decode(), Refusal.TOO_LARGE),
    ],
)
def test_everything_else_is_refused(uri, refusal):
    with pytest.raises(MediaRefusedError) as caught:
        read_data_uri(uri, "image", LIMIT)
    assert caught.value.refusal is refusal


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text):
    try:
        media = read_data_uri("data:image/png;base64," + text, "image", LIMIT)
    except MediaRefusedError:
        return
    assert media.content


@given(st.binary(min_size=1, max_size=LIMIT))
def test_any_content_comes_back(content):
    uri = f"data:image/png;base64,{base64.b64encode(content).decode()}"
    assert read_data_uri(uri, "image", LIMIT).content == content
