from __future__ import annotations

import base64

import numpy as np
import pytest

from api.fake_engine import DIM, FakeEngine, fake_vector
from infinity_emb.types import EmbeddingDtype

PATHS = ["/v1/embeddings", "/embeddings", "/openai/deployments/fake/model/embeddings?api-version=2024-06-01"]


def unit(text: object) -> np.ndarray:
    vector = fake_vector(text)
    return vector / np.linalg.norm(vector)


@pytest.mark.parametrize("path", PATHS)
def test_a_string_gives_one_flat_vector(served, path):
    answer = served.post(path, {"model": "m", "input": "green tea"})
    body = answer.json()
    assert answer.status_code == 200
    assert body["object"] == "list"
    assert [item["index"] for item in body["data"]] == [0]
    assert body["data"][0]["object"] == "embedding"
    np.testing.assert_allclose(body["data"][0]["embedding"], unit("green tea"), atol=1e-6)
    assert body["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    assert body["model"] == "fake/model"
    assert body["id"].startswith("infinity-")
    assert isinstance(body["created"], int)


def test_a_list_keeps_its_order_and_numbers_it(served):
    texts = [f"text {number}" for number in range(50)]
    data = served.post("/v1/embeddings", {"input": texts}).json()["data"]
    assert [item["index"] for item in data] == list(range(50))
    for item, text in zip(data, texts, strict=True):
        np.testing.assert_allclose(item["embedding"], unit(text), atol=1e-6)


@pytest.mark.parametrize("encoding", ["float", None])
def test_float_and_null_encoding_give_numbers(served, encoding):
    data = served.post("/v1/embeddings", {"input": ["a"], "encoding_format": encoding}).json()["data"]
    assert len(data[0]["embedding"]) == DIM


def test_base64_is_little_endian_float32_of_the_same_numbers(served):
    floats = served.post("/v1/embeddings", {"input": ["a", "b"]}).json()["data"]
    coded = served.post("/v1/embeddings", {"input": ["a", "b"], "encoding_format": "base64"}).json()["data"]
    for number, text in zip(floats, coded, strict=True):
        raw = base64.b64decode(text["embedding"], validate=True)
        assert len(raw) == 4 * DIM
        np.testing.assert_array_equal(np.frombuffer(raw, "<f4"), np.array(number["embedding"], "<f4"))


def test_an_unknown_encoding_is_refused_with_the_allowed_ones(served):
    answer = served.post("/v1/embeddings", {"input": "x", "encoding_format": "md5"})
    assert answer.status_code == 422
    assert "'float', 'base64'" in answer.json()["error"]["message"]


@pytest.mark.parametrize("value", [0, None, DIM, str(DIM)])
def test_zero_null_and_native_dimensions_give_the_whole_vector(served, value):
    answer = served.post("/v1/embeddings", {"input": "x", "dimensions": value})
    assert len(answer.json()["data"][0]["embedding"]) == DIM


@pytest.mark.parametrize("field", ["dimensions", "output_dimension"])
def test_dimensions_are_passed_under_either_name(served, field):
    answer = served.post("/v1/embeddings", {"input": "x", field: 4})
    assert len(answer.json()["data"][0]["embedding"]) == 4


@pytest.mark.parametrize("value", [DIM + 1, -1, 99999999999999999999999])
def test_dimensions_out_of_range_are_400_and_name_the_range(served, value):
    answer = served.post("/v1/embeddings", {"input": "x", "dimensions": value})
    assert answer.status_code == 400
    assert f"1..{DIM}" in answer.json()["error"]["message"]
    assert answer.json()["error"]["param"] == "dimensions"


@pytest.mark.parametrize("field", ["embedding_dtype", "output_dtype", "encoding_format", "embedding_type"])
def test_small_number_formats_are_taken_under_every_name(served, field):
    answer = served.post("/v1/embeddings", {"input": "x", field: "ubinary"})
    packed = np.packbits(unit("x") > 0).tolist()
    assert answer.json()["data"][0]["embedding"] == packed


def test_base64_of_small_numbers_holds_those_numbers(served):
    body = {"input": "x", "output_dtype": "int8", "encoding_format": "base64"}
    raw = base64.b64decode(served.post("/v1/embeddings", body).json()["data"][0]["embedding"])
    np.testing.assert_array_equal(np.frombuffer(raw, np.int8), np.rint(unit("x") * 127).astype(np.int8))


def test_the_servers_own_number_format_holds_unless_the_request_names_one(serve):
    server = serve(FakeEngine(embedding_dtype=EmbeddingDtype.UBINARY))
    assert len(server.post("/embeddings", {"input": "x"}).json()["data"][0]["embedding"]) == DIM // 8
    body = {"input": "x", "embedding_dtype": "float32"}
    assert len(server.post("/embeddings", body).json()["data"][0]["embedding"]) == DIM


def test_octet_stream_is_the_bare_numbers(served):
    answer = served.request(
        "POST", "/v1/embeddings", json={"input": ["a", "b"]}, headers={"accept": "application/octet-stream"}
    )
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-embedding-shape"] == f"2,{DIM}"
    assert answer.headers["x-embedding-dtype"] == "float32"
    vectors = np.frombuffer(answer.content, "<f4").reshape(2, DIM)
    np.testing.assert_allclose(vectors, [unit("a"), unit("b")], atol=1e-6)


def test_octet_stream_in_half_precision(served):
    headers = {"accept": "application/octet-stream; dtype=float16"}
    answer = served.request("POST", "/v1/embeddings", json={"input": "a"}, headers=headers)
    np.testing.assert_allclose(np.frombuffer(answer.content, "<f2"), unit("a"), atol=1e-3)


def test_npy_is_a_numpy_file(served, tmp_path):
    answer = served.request("POST", "/embed", json={"inputs": ["a", "b"]}, headers={"accept": "application/x-npy"})
    (tmp_path / "a.npy").write_bytes(answer.content)
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), [unit("a"), unit("b")], atol=1e-6)


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"prompt": "p: "}, "p: x"),
        ({"prompt_name": "code"}, "code: x"),
        ({"input_type": "query"}, "query: x"),
        ({"input_type": "search_query"}, "query: x"),
        ({"task": "retrieval.query"}, "query: x"),
        ({"input_type": "code"}, "code: x"),
        ({"input_type": "classification"}, "x"),
        ({"prompt": "", "prompt_name": "code"}, "x"),
    ],
)
def test_prompts_reach_the_engine(served, fields, seen):
    data = served.post("/v1/embeddings", {"input": "x", **fields}).json()["data"]
    np.testing.assert_allclose(data[0]["embedding"], unit(seen), atol=1e-6)


def test_normalize_false_gives_raw_vectors(served):
    data = served.post("/v1/embeddings", {"input": "x", "normalize": False}).json()["data"]
    np.testing.assert_allclose(data[0]["embedding"], fake_vector("x"), atol=1e-6)


def test_truncation_is_told_in_header_and_usage(served):
    answer = served.post("/v1/embeddings", {"input": ["short", "word " * 50]})
    assert answer.headers["x-truncated"] == "1"
    assert answer.json()["usage"]["truncated_items"] == [1]
    assert "x-truncated" not in served.post("/v1/embeddings", {"input": "short"}).headers


@pytest.mark.parametrize("fields", [{"truncate": False}, {"truncate": "NONE"}, {"truncation": False}])
def test_truncation_off_refuses_long_texts_with_counts(served, fields):
    answer = served.post("/v1/embeddings", {"input": ["word " * 50], **fields})
    assert answer.status_code == 400
    assert "52 tokens" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "side"),
    [
        ({}, None),
        ({"truncate": "START"}, "left"),
        ({"truncate": "END"}, "right"),
        ({"truncation_direction": "Left"}, "left"),
        ({"truncation_side": "right"}, "right"),
    ],
)
def test_truncation_side_reaches_the_engine(served, fields, side):
    served.post("/v1/embeddings", {"input": "x", **fields})
    assert served.engine.calls[-1][2].text.truncation_side == side


def test_chat_messages_are_read_as_text(served):
    conversation = [{"role": "user", "content": [{"type": "text", "text": "a"}]}, {"role": "user", "content": "b"}]
    one = served.post("/v1/embeddings", {"messages": conversation}).json()["data"]
    two = served.post("/v1/embeddings", {"messages": [conversation, conversation]}).json()["data"]
    np.testing.assert_allclose(one[0]["embedding"], unit("a\nb"), atol=1e-6)
    assert len(two) == 2


def test_objects_with_text_are_read(served):
    data = served.post("/v1/embeddings", {"input": [{"text": "a"}, "b"]}).json()["data"]
    np.testing.assert_allclose([item["embedding"] for item in data], [unit("a"), unit("b")], atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        {"input": ["http://x/y.png"], "modality": "image"},
        {"input": ["http://x/y.wav"], "modality": "audio"},
        {"input": [{"image": "data:image/png;base64,AAAA"}]},
    ],
)
def test_media_to_a_text_model_is_400_and_names_what_it_offers(served, body):
    answer = served.post("/v1/embeddings", body)
    message = answer.json()["error"]["message"]
    assert answer.status_code == 400
    assert "fake/model" in message
    assert "embed text" in message


def test_data_uris_are_ordinary_text_in_a_text_request(served):
    assert (
        served.post("/v1/embeddings", {"input": ["data:image/png;base64,AAAA"], "modality": "text"}).status_code == 200
    )


@pytest.mark.parametrize("text", ["", "   ", "\u0000", "a\u0000b", "🦊" * 100])
def test_odd_but_legal_texts_are_embedded_exactly_as_sent(served, text):
    data = served.post("/v1/embeddings", {"input": ["alpha", text]}).json()["data"]
    np.testing.assert_allclose(data[1]["embedding"], unit(text), atol=1e-6)


def test_inputs_at_this_path_get_the_bare_list_that_hugging_face_clients_want(served):
    assert np.array(served.post("/v1/embeddings", {"inputs": "hello"}).json()).shape == (1, DIM)
