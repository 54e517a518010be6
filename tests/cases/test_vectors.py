"""Cases about vectors that are right in form and wrong in value: they are compared with the reference libraries."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from cases.reference import encode
from cases.served import Served, cosines, message_of, vectors_of
from infinity_emb.types import InferenceEngine
from texts import sample
from tiny import edit_json, tiny_bert

FLOAT_ENGINES = (InferenceEngine.OPENVINO, InferenceEngine.ONNXRUNTIME, InferenceEngine.TORCH)
PROBE = "lima is the capital of peru"
LIMIT = 64


@pytest.fixture(scope="module", params=FLOAT_ENGINES, ids=str)
def served_by(request, start):
    """Serves a checkpoint with each engine: `served_by(folder)`."""
    return lambda folder: Served(start(folder, engine=request.param))


def with_weights(source, folder, change):
    """A copy of a checkpoint whose tensors `change` altered in place."""
    from safetensors.numpy import load_file, save_file

    shutil.copytree(source, folder)
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def row_of(engine, word):
    """Id of a word that is one token, and so the row of the table that only texts with this word read."""
    (tokens,) = engine.tokenize([word], add_special_tokens=False)
    assert len(tokens) == 1
    return tokens[0].id


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_b059_a_vector_that_is_not_finite_is_an_error_that_names_the_item(folders, start, engines, tmp_path, value):
    row = row_of(engines["embed"], "berlin")

    def change(tensors):
        tensors["embeddings.word_embeddings.weight"][row, 0] = value

    server = Served(start(with_weights(folders["embed"], tmp_path / "model", change)))
    answer = server.post("/v1/embeddings", input=["tea", "berlin", "lima"])
    message = message_of(answer, statuses=frozenset({500}))
    assert "item 1" in message
    assert "finite" in message
    np.testing.assert_allclose(
        server.embed(["tea", "lima"]), Served(engines["embed"]).embed(["tea", "lima"]), atol=1e-5
    )


@pytest.mark.parametrize("name", ["rerank", "classify"])
def test_b059_a_score_that_is_not_finite_is_an_error_too(folders, start, engines, tmp_path, name):
    row = row_of(engines[name], "berlin")

    def change(tensors):
        tensors["bert.embeddings.word_embeddings.weight"][row] = np.nan

    server = Served(start(with_weights(folders[name], tmp_path / "model", change)))
    body = {"input": ["tea", "berlin"], "query": "tea", "documents": ["tea", "berlin"]}
    assert "finite" in message_of(server.post(f"/{name}", **body), statuses=frozenset({500}))
    good = {key: ["tea"] if isinstance(value, list) else value for key, value in body.items()}
    assert server.post(f"/{name}", **good).status_code == 200


def test_b061_a_vector_of_zeros_is_an_error_and_not_an_answer(folders, start, tmp_path):
    def change(tensors):
        for part in ("weight", "bias"):
            tensors[f"encoder.layer.1.output.LayerNorm.{part}"][:] = 0

    server = Served(start(with_weights(folders["embed"], tmp_path / "model", change)))
    assert "length zero" in message_of(server.post("/v1/embeddings", input="tea"), statuses=frozenset({500}))


def test_b062_every_vector_is_of_unit_length_and_that_of_the_reference(served_by, folders):
    texts = sample(40)[-20:]
    vectors = served_by(folders["embed"]).embed(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    np.testing.assert_allclose(vectors, encode(folders["embed"], texts), atol=1e-5)


def test_b062_a_repository_without_normalisation_is_taken_at_its_word(served_by, tmp_path):
    folder = tiny_bert(tmp_path / "model", normalize=False)
    server = served_by(folder)
    vectors = server.embed([PROBE, "tea"])
    np.testing.assert_allclose(vectors, encode(folder, [PROBE, "tea"]), atol=1e-4)
    assert abs(np.linalg.norm(vectors, axis=1) - 1).min() > 0.01
    unit = server.embed([PROBE, "tea"], normalize=True)
    np.testing.assert_allclose(unit, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_b063_pooling_is_what_the_repository_says(served_by, tmp_path, pooling):
    folder = tiny_bert(tmp_path / "model", pooling=pooling)
    texts = [PROBE, "tea", "berlin had a population of 3 520 031 in 2019 !"]
    np.testing.assert_allclose(served_by(folder).embed(texts), encode(folder, texts), atol=1e-5)


def test_b063_copies_that_pool_differently_differ(folders, start, tmp_path, embedder):
    shutil.copytree(folders["embed"], tmp_path / "cls")
    edit_json(tmp_path / "cls/1_Pooling/config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True)
    assert cosines(Served(start(tmp_path / "cls")).embed(PROBE), embedder.embed(PROBE))[0] < 0.99


def test_b063_a_plain_checkpoint_is_mean_pooled_to_unit_length(served_by, tmp_path, embedder):
    plain = tiny_bert(tmp_path / "plain", modules=False)
    vectors = served_by(plain).embed([PROBE, "tea"])
    np.testing.assert_allclose(vectors, embedder.embed([PROBE, "tea"]), atol=1e-5)


def decoder(folder, side, *, end_token):
    """A causal embedder that pools the last token, its tokenizer padding on `side`."""
    import tiny_more
    from tiny import write_json, write_modules

    sample_of = tiny_bert(folder.parent / f"{folder.name}-tokenizer", modules=False)
    settings = json.loads((sample_of / "tokenizer_config.json").read_text()) | {"padding_side": side}
    vocabulary = json.loads((sample_of / "config.json").read_text())["vocab_size"]
    folder.mkdir()
    tiny_more.save(folder, "qwen3", {"vocab_size": vocabulary, "max_position_embeddings": LIMIT})
    tokenizer = json.loads((sample_of / "tokenizer.json").read_text())
    tokenizer["padding"] = tokenizer["truncation"] = None
    if not end_token:
        template = tokenizer["post_processor"]
        for form in ("single", "pair"):
            template[form] = [part for part in template[form] if "SpecialToken" not in part]
        template["special_tokens"] = {}
    write_json(folder / "tokenizer.json", tokenizer)
    write_json(folder / "tokenizer_config.json", settings | {"tokenizer_class": "PreTrainedTokenizerFast"})
    write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": 32, "pooling_mode_lasttoken": True})
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": LIMIT, "do_lower_case": False})
    return folder


@pytest.mark.parametrize("end_token", [True, False], ids=["end token", "no end token"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_b065_the_last_token_is_never_padding(served_by, tmp_path, side, end_token):
    folder = decoder(tmp_path / "decoder", side, end_token=end_token)
    texts = ["tea", "a much longer sentence about the capital of peru", "lima is the capital", PROBE * 20]
    server = served_by(folder)
    together = server.embed(texts)
    alone = np.vstack([server.embed(text) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together, encode(folder, texts), atol=1e-5)


PROMPTS = {"query": "query: ", "passage": "passage: "}


@pytest.fixture(scope="module")
def prompted(tmp_path_factory, start):
    """Servers of a model with prompts, by the name of its default prompt."""
    root = tmp_path_factory.mktemp("prompted")
    names = (None, "query")
    folders = {name: tiny_bert(root / str(name), prompts=PROMPTS, default_prompt_name=name) for name in names}
    return {name: (Served(start(folder)), folder) for name, folder in folders.items()}


@pytest.mark.parametrize("default", [None, "query"])
@pytest.mark.parametrize(
    ("fields", "prefix"),
    [
        ({"prompt_name": "query"}, "query: "),
        ({"prompt_name": "passage"}, "passage: "),
        ({"input_type": "query"}, "query: "),
        ({"input_type": "document"}, "passage: "),
        ({"prompt": "search: "}, "search: "),
    ],
)
def test_b068_a_prompt_is_put_before_the_text_byte_for_byte(prompted, default, fields, prefix):
    server, _ = prompted[default]
    with_prompt = server.post("/v1/embeddings", input=["tea", " peru"], **fields)
    written_out = server.post("/v1/embeddings", input=[prefix + "tea", prefix + " peru"], prompt="")
    np.testing.assert_array_equal(vectors_of(with_prompt), vectors_of(written_out))
    assert with_prompt.json()["usage"] == written_out.json()["usage"]


@pytest.mark.parametrize("default", [None, "query"])
def test_b068_the_default_prompt_is_used_as_the_reference_uses_it(prompted, default):
    server, folder = prompted[default]
    np.testing.assert_allclose(server.embed([PROBE, "tea"]), encode(folder, [PROBE, "tea"]), atol=1e-5)
    expected = encode(folder, ["tea"], prompt_name="passage")
    np.testing.assert_allclose(server.embed("tea", prompt_name="passage"), expected, atol=1e-5)


def test_b068_an_unknown_prompt_name_is_refused_with_the_known_ones(prompted):
    message = message_of(prompted[None][0].post("/v1/embeddings", input="x", prompt_name="code"))
    for word in ("code", "query", "passage"):
        assert word in message


def test_b068_no_prompt_is_put_before_reranked_texts(folders, start, tmp_path, reranker):
    from tiny import write_json

    shutil.copytree(folders["rerank"], tmp_path / "model")
    saved = {"prompts": PROMPTS, "default_prompt_name": "query"}
    write_json(tmp_path / "model/config_sentence_transformers.json", saved)
    documents = ["lima is the capital of peru", "tea"]
    np.testing.assert_allclose(
        Served(start(tmp_path / "model")).rerank("peru", documents), reranker.rerank("peru", documents), atol=1e-6
    )


def test_b077_padding_of_a_neighbour_is_not_attended_to(served_by, folders):
    server = served_by(folders["embed"])
    texts = ["how are you ?", "tea"], ["how are you ?", "word " * 50]
    first, second = (server.embed(pair)[0] for pair in texts)
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_b078_every_engine_gives_the_vectors_of_the_reference(served_by, folders):
    texts = sample(50)
    vectors = served_by(folders["embed"]).embed(texts)
    expected = encode(folders["embed"], texts)
    assert cosines(vectors, expected).min() >= 0.999
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "path", "make"),
    [
        ("embed", "/v1/embeddings", lambda texts: {"input": texts}),
        ("rerank", "/rerank", lambda texts: {"query": "capital", "documents": texts}),
        ("classify", "/classify", lambda texts: {"input": texts}),
    ],
)
def test_b080_usage_counts_the_tokens_that_the_model_reads(everything, engines, name, path, make):
    def usage(texts):
        answer = everything.post(path, model=f"acme/{name}", **make(texts)).json()["usage"]
        assert answer["total_tokens"] == answer["prompt_tokens"]
        return answer["prompt_tokens"]

    def real(text):
        tokens = engines[name].tokenize([text])[0]
        pair = len(engines[name].tokenize(["capital"])[0]) - 1 if name == "rerank" else 0
        return min(LIMIT, len(tokens) + pair)

    texts = ["hi", "a sentence of some tokens or so", "", "word " * 300]
    for text in texts:
        assert usage([text]) == real(text)
    assert usage(texts) == sum(map(real, texts))
