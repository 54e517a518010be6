from __future__ import annotations

import pytest

from infinity_emb.server.head import head_of
from infinity_emb.server.response import Response


def test_a_head_is_a_status_line_and_headers():
    response = Response(b"", status=404, headers=[(b"a", b"1")])
    assert head_of(response, [(b"date", b"now")], keep_alive=True) == (
        b"HTTP/1.1 404 Not Found\r\na: 1\r\ndate: now\r\n\r\n"
    )


def test_the_last_answer_on_a_connection_says_so():
    assert head_of(Response(b""), [], keep_alive=False) == b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\0b", b"\x7f"])
def test_a_header_cannot_become_two(value):
    with pytest.raises(ValueError, match="control character"):
        head_of(Response(b"", headers=[(b"location", value)]), [], keep_alive=True)
