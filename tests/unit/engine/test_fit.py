"""Weights that do not fit are an error before they are loaded, with what they need and what is left."""

from __future__ import annotations

import pytest

from infinity_emb import AsyncEmbeddingEngine, EngineArgs
from infinity_emb.backends.memory import Memory
from infinity_emb.engine.fit import weights_bytes
from infinity_emb.errors import LoadError
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.types import Dtype
from tiny import tiny_bert

GIB_BYTES = 2**30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_bert(tmp_path_factory.mktemp("fit") / "bert")


@pytest.fixture
def spec(folder):
    return read_spec(Checkpoint(folder, "tiny", "local folder"))


def engine_of(folder):
    args = EngineArgs(model_name_or_path=str(folder), engine="openvino", dtype="float32", fidelity=0)
    return AsyncEmbeddingEngine.from_args(args)


def test_weights_are_counted_as_they_are_computed_but_no_wider_than_stored(spec):
    whole, half = weights_bytes(spec, Dtype.FLOAT32), weights_bytes(spec, Dtype.BFLOAT16)
    assert whole == 2 * half > 0
    assert whole < sum(path.stat().st_size for path in spec.weights)  # tables of words stay in the file


def test_a_model_that_does_not_fit_is_refused_before_it_is_loaded(folder, spec, monkeypatch):
    need = weights_bytes(spec, Dtype.FLOAT32)
    monkeypatch.setattr("infinity_emb.engine.fit.read_memory", lambda: Memory(0, need - 1))
    monkeypatch.setattr("infinity_emb.backends.openvino.OpenVinoBackend.__init__", lambda *_: pytest.fail("loaded"))
    with pytest.raises(LoadError) as caught:
        engine_of(folder)
    assert f"need at least {need / GIB_BYTES:.3f} GiB in float32" in str(caught.value)
    assert f"{(need - 1) / GIB_BYTES:.3f} GiB of the machine's are left" in str(caught.value)


@pytest.mark.parametrize("memory", [None, Memory(0, 2**40)])
def test_a_model_that_fits_or_a_system_that_does_not_tell_is_no_reason(folder, monkeypatch, memory):
    monkeypatch.setattr("infinity_emb.engine.fit.read_memory", lambda: memory)
    engine_of(folder).close()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")])
def test_a_library_that_runs_out_of_memory_is_a_load_error_with_both_figures(folder, monkeypatch, error):
    def broken(*_):
        raise error

    monkeypatch.setattr("infinity_emb.backends.openvino.OpenVinoBackend.__init__", broken)
    with pytest.raises(LoadError, match=r"need at least \d+\.\d+ GiB in float32.* GiB of the machine's are left"):
        engine_of(folder)


def test_another_error_of_the_library_stays_what_it_is(folder, monkeypatch):
    def broken(*_):
        raise RuntimeError("no such device")

    monkeypatch.setattr("infinity_emb.backends.openvino.OpenVinoBackend.__init__", broken)
    with pytest.raises(RuntimeError, match="no such device"):
        engine_of(folder)
