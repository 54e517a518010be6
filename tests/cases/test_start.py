"""Cases about starting: the real command in a process, and what is decided before the first request."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

from cases.served import Served
from infinity_emb.config.resolve import resolve
from infinity_emb.errors import CheckpointError, ConfigurationError
from serving import serve
from tiny import edit_json, tiny_bert

NO_NETWORK = [sys.executable, str(Path(__file__).parent / "no_network.py")]
HIDDEN = 32


def test_b108_a_model_on_disk_is_served_without_a_single_outbound_attempt(folders, tmp_path):
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    with serve("--model-id", str(folders["embed"]), program=NO_NETWORK, **environment) as server:
        server.wait_until_ready()
        answer = httpx.post(f"{server.url}/v1/embeddings", json={"input": "tea"}, timeout=30)
        assert answer.status_code == 200
        assert len(answer.json()["data"][0]["embedding"]) == HIDDEN
        assert server.stop() == 0
    assert "OUTBOUND" not in server.output


def test_b108_a_folder_needs_no_network_even_if_it_is_allowed(folders, tmp_path):
    environment = {"HF_HUB_OFFLINE": "0", "HF_HOME": str(tmp_path)}
    with serve("--model-id", str(folders["embed"]), "--preload-only", program=NO_NETWORK, **environment) as server:
        assert server.process.wait(60) == 0
    assert "OUTBOUND" not in server.output


def test_b108_a_model_that_is_not_cached_is_a_clear_error_and_no_attempt(tmp_path):
    environment = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    with serve("--model-id", "acme/not-here", program=NO_NETWORK, **environment) as server:
        assert server.process.wait(30) == 1
    assert "acme/not-here" in server.output
    assert "HF_HUB_OFFLINE" in server.output
    assert "Traceback" not in server.output
    assert "OUTBOUND" not in server.output


def test_b106_until_the_model_is_loaded_a_probe_is_refused_or_503(folders):
    statuses = []
    with serve("--model-id", str(folders["embed"]), "--fidelity", "0") as server:
        deadline_s = time.monotonic() + 60
        while not statuses or statuses[-1] != 200:
            assert time.monotonic() < deadline_s, server.output
            assert server.process.poll() is None, server.output
            threading.Event().wait(0.01)  # leaves the processor to the server
            try:
                statuses.append(httpx.get(f"{server.url}/health", timeout=5).status_code)
            except httpx.TransportError:
                continue  # the port is not bound yet
            if statuses[-1] == 200:
                answer = httpx.post(f"{server.url}/v1/embeddings", json={"input": "tea"}, timeout=30)
                assert answer.status_code == 200
    assert set(statuses) <= {200, 503}


def onnx_file(path: Path, seed: int, *, half: bool = False) -> np.ndarray:
    """A model of one table look-up, as an ONNX file; returns the table."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    table = np.random.default_rng(seed).normal(size=(400, HIDDEN)).astype(np.float16 if half else np.float32)
    axes = ["rows", "width"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in ("input_ids", "attention_mask")]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*axes, HIDDEN])
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"])]
    nodes.append(helper.make_node("Cast", ["states"], ["last_hidden_state"], to=TensorProto.FLOAT))
    graph = helper.make_graph(nodes, "lookup", inputs, [output], [numpy_helper.from_array(table, "table")])
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return table


@pytest.fixture
def repository(tmp_path):
    """A checkpoint of an architecture without a graph builder, and without weights of its own."""
    folder = tiny_bert(tmp_path / "model")
    (folder / "model.safetensors").unlink()
    edit_json(folder / "config.json", model_type="lookup", architectures=["LookupModel"])
    return folder


def mean_of(table: np.ndarray, engine, text: str) -> np.ndarray:
    mean = table[[token.id for token in engine.tokenize([text])[0]]].astype(np.float32).mean(axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx"])
def test_b112_the_one_float32_file_is_used_and_named(repository, start, name):
    table = onnx_file(repository / name, 1)
    for _ in range(2):  # what the first start leaves behind changes nothing for the second
        engine = start(repository)
        assert engine.card.extra["graph"] == name
        np.testing.assert_allclose(Served(engine).embed("tea"), [mean_of(table, engine, "tea")], atol=1e-5)


def test_b112_of_several_files_the_plain_one_is_used_unless_another_is_named(repository, start, caplog):
    plain, other = onnx_file(repository / "onnx/model.onnx", 1), onnx_file(repository / "onnx/model_quantized.onnx", 2)
    onnx_file(repository / "onnx/model_optimized.onnx", 3)
    with caplog.at_level(logging.INFO, logger="infinity_emb"):
        engine = start(repository)
    assert "onnx/model.onnx" in caplog.text
    np.testing.assert_allclose(Served(engine).embed("tea"), [mean_of(plain, engine, "tea")], atol=1e-5)
    named = start(repository, onnx_file="onnx/model_quantized.onnx")
    assert named.card.extra["graph"] == "onnx/model_quantized.onnx"
    np.testing.assert_allclose(Served(named).embed("tea"), [mean_of(other, named, "tea")], atol=1e-5)


def test_b112_a_file_of_a_lesser_number_format_is_used_only_when_it_is_named(repository, start):
    table = onnx_file(repository / "onnx/model.onnx", 1, half=True)
    with pytest.raises(CheckpointError, match="float32 ONNX file"):
        start(repository)
    engine = start(repository, onnx_file="onnx/model.onnx")
    np.testing.assert_allclose(Served(engine).embed("tea"), [mean_of(table, engine, "tea")], atol=1e-3)


def test_b112_no_file_is_an_error_that_names_what_is_missing(repository, start):
    with pytest.raises(CheckpointError, match=r"model\.safetensors: the file is missing"):
        start(repository)
    onnx_file(repository / "onnx/model.onnx", 1)
    with pytest.raises(CheckpointError, match=r"ONNX files there: onnx/model\.onnx"):
        start(repository, onnx_file="onnx/other.onnx")


def test_b112_safetensors_that_can_be_built_from_win_over_onnx_files(folders, start, tmp_path, embedder):
    import shutil

    shutil.copytree(folders["embed"], tmp_path / "model")
    onnx_file(tmp_path / "model/onnx/model.onnx", 1)
    engine = start(tmp_path / "model")
    assert engine.card.extra["graph"] == "built from config"
    np.testing.assert_allclose(Served(engine).embed("tea"), embedder.embed("tea"), atol=1e-6)


def started(**variables: str):
    """Engine arguments that the environment asks for."""
    return resolve({}, {f"INFINITY_{name}": value for name, value in variables.items()}).engine_args


def test_b114_each_model_gets_its_own_value_of_an_option(start):
    arguments = started(MODEL_ID="acme/one;acme/two", BATCH_SIZE="8;32", ENGINE="dummy")
    engines = [start(one.model_name_or_path, engine="dummy", batch_size=one.batch_size) for one in arguments]
    entries = Served(*engines).get("/models").json()["data"]
    assert {entry["id"]: entry["stats"]["batch_size"] for entry in entries} == {"acme/one": 8, "acme/two": 32}


def test_b114_one_value_is_for_every_model():
    arguments = started(MODEL_ID="acme/one;acme/two", BATCH_SIZE="8")
    assert [one.batch_size for one in arguments] == [8, 8]


def test_b114_a_separator_at_the_end_makes_no_model():
    arguments = started(MODEL_ID="acme/one;acme/two;", BATCH_SIZE="8;32;")
    assert [(one.model_name_or_path, one.batch_size) for one in arguments] == [("acme/one", 8), ("acme/two", 32)]


@pytest.mark.parametrize("listed", [";acme/one", "acme/one;;acme/two", "acme/one;;"])
def test_b114_an_empty_name_elsewhere_is_refused(listed):
    with pytest.raises(ConfigurationError, match="INFINITY_MODEL_ID: it must not be empty"):
        started(MODEL_ID=listed)


@pytest.mark.parametrize("batch_size", ["8;16", "8;16;32;64"])
def test_b114_a_list_that_does_not_fit_the_models_is_refused_with_both_numbers(batch_size):
    with pytest.raises(ConfigurationError, match="3") as caught:
        started(MODEL_ID="a/one;a/two;a/three", BATCH_SIZE=batch_size)
    assert str(len(batch_size.split(";"))) in caught.value.message


@pytest.mark.parametrize(
    "variables",
    [
        {"MODEL_ID": "acme/one;acme/one"},
        {"MODEL_ID": "acme/one;acme/two", "SERVED_MODEL_NAME": "same;same"},
        {"MODEL_ID": "acme/one;other/acme/one"},
    ],
)
def test_b114_one_name_for_two_models_is_refused(variables):
    with pytest.raises(ConfigurationError, match="Names must differ"):
        started(**variables)


def test_b114_the_command_maps_repeated_flags_in_order(folders):
    flags = ["--model-id", str(folders["embed"]), "--model-id", str(folders["rerank"])]
    flags += [
        "--batch-size",
        "8",
        "--batch-size",
        "32",
        "--served-model-name",
        "e",
        "--served-model-name",
        "c",
        "--fidelity",
        "0",
    ]
    with serve(*flags) as server:
        server.wait_until_ready()
        entries = {entry["id"]: entry for entry in httpx.get(f"{server.url}/models").json()["data"]}
    assert {name: entry["stats"]["batch_size"] for name, entry in entries.items()} == {"e": 8, "c": 32}
    assert entries["e"]["capabilities"] == ["embed"]
    assert "rerank" in entries["c"]["capabilities"]
