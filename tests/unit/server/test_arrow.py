from __future__ import annotations

import io

import numpy as np
import pytest

from infinity_emb.server.arrow import arrow_stream


@pytest.mark.parametrize("dtype", ["<f4", "<f2", "i1", "u1"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (100, 384)])
def test_arrow_reads_back_the_same_numbers(dtype, shape):
    arrow = pytest.importorskip("pyarrow")
    vectors = (np.arange(np.prod(shape)).reshape(shape) % 100).astype(dtype)
    with arrow.ipc.open_stream(io.BytesIO(arrow_stream(vectors))) as reader:
        table = reader.read_all()
    table.validate(full=True)
    column = table["embedding"].combine_chunks()
    assert column.type.list_size == shape[1]
    np.testing.assert_array_equal(column.flatten().to_numpy(zero_copy_only=False).reshape(shape), vectors)


def test_messages_are_framed_and_the_body_is_aligned():
    vectors = np.ones((2, 3), dtype="<f4")
    stream = arrow_stream(vectors)
    places = []
    at = 0
    for body_bytes in (0, 24):
        assert stream[at : at + 4] == b"\xff\xff\xff\xff"
        length = int.from_bytes(stream[at + 4 : at + 8], "little")
        assert length % 8 == 0
        at += 8 + length
        places.append(at)
        at += body_bytes
    assert stream[places[1] : places[1] + 24] == vectors.tobytes()
    assert stream[at:] == b"\xff\xff\xff\xff\x00\x00\x00\x00"


def test_the_route_answers_with_a_stream():
    from api.conftest import Served

    headers = {"accept": "application/vnd.apache.arrow.stream"}
    answer = Served().request("POST", "/v1/embeddings", json={"input": ["a", "b"]}, headers=headers)
    assert answer.headers["content-type"] == headers["accept"]
    assert answer.headers["x-embedding-shape"] == "2,8"
    assert len(answer.content) % 8 == 0
