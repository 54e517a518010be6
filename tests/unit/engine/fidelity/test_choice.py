"""`auto` takes the fastest number format whose results are right; wrong ones give way, and nothing wrong is served."""

from __future__ import annotations

import logging
from functools import partial

import numpy as np
import pytest

import tiny
from forward import REAL_BACKENDS
from infinity_emb.backends.base import Backend, BackendOptions, BackendReport
from infinity_emb.backends.registry import backend_class
from infinity_emb.engine.fidelity.check import Attempt, SelfCheck
from infinity_emb.engine.fidelity.choice import attempts_of, choose
from infinity_emb.engine.fidelity.probes import probe_features
from infinity_emb.engine.fidelity.record import Records
from infinity_emb.errors import ConfigurationError, LoadError
from infinity_emb.models.fingerprint import Fingerprints
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.spec import read_spec
from infinity_emb.types import Device, Dtype, InferenceEngine

BAR = 0.9999
# How much noise a number format puts on the right vectors; that of int8 gives cosines near 0.984.
NOISE = {Dtype.FLOAT32: 0.0, Dtype.BFLOAT16: 0.003, Dtype.INT8: 0.18, Dtype.FP8: np.nan}


class Noisy(Backend):
    """A backend whose results are as wrong as its number format makes them."""

    name = "noisy"
    fast = ()
    loaded: list

    def __init__(self, spec, options):
        self.dtype = Dtype.FLOAT32 if options.dtype is Dtype.AUTO else options.dtype
        if self.dtype not in NOISE:
            raise ConfigurationError(f"{self.dtype} is not offered here")
        type(self).loaded.append(self.dtype)
        plain = BackendOptions(Device.CPU, Dtype.FLOAT32, threads=1)
        self._backend = backend_class(InferenceEngine.OPENVINO)(spec, plain)
        self._chance = np.random.default_rng(0)

    @classmethod
    def fast_dtypes(cls, options):  # noqa: ARG003 - the contract's signature
        return cls.fast

    @property
    def inputs(self):
        return self._backend.inputs

    @property
    def layout(self):
        return self._backend.layout

    @property
    def report(self):
        return BackendReport("cpu", self.dtype, 1, "noisy 1", "none")

    def start(self, arrays):
        outputs = self._backend.start(arrays).result()
        noise = self._chance.normal(size=outputs["embedding"].shape)
        noise *= NOISE[self.dtype] / np.linalg.norm(noise, axis=1, keepdims=True)
        made = outputs["embedding"] + noise.astype(np.float32)
        return _Done(
            {
                "embedding": made / np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-12),
                "norm": outputs["norm"],
            }
        )

    def close(self):
        type(self).loaded.append("closed")
        self._backend.close()


class _Done:
    def __init__(self, arrays):
        self._arrays = arrays

    def result(self):
        return self._arrays


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    folder = tiny.tiny_bert(tmp_path_factory.mktemp("bert"))
    return read_spec(Checkpoint(folder, "tiny/bert", "local folder"))


@pytest.fixture
def chosen(spec, tmp_path):
    """Choose a number format; returns the choice and what was loaded and closed."""

    def run(dtype=Dtype.AUTO, fast=(), bar=BAR, last=Dtype.FLOAT32):
        backend_type = type("Noisy", (Noisy,), {"fast": fast, "loaded": []})
        options = BackendOptions(Device.CPU, dtype, threads=1)
        fingerprints = Fingerprints(spec, tmp_path / "hashes", None)
        probes = partial(probe_features, TextPreprocessor(spec), spec)
        check = SelfCheck(spec, probes, options, ("noisy",), fingerprints, Records(tmp_path / "records"))
        attempts = [
            attempt if attempt.dtype is not Dtype.FLOAT32 else Attempt(last, None)
            for attempt in attempts_of(options, backend_type, checked=True)
        ]

        def load(attempt):
            return (backend_type(spec, BackendOptions(Device.CPU, attempt.dtype, threads=1)),)

        try:
            choice = choose(attempts, load, check, bar)
        finally:
            fingerprints.close()
        for backend in choice.backends:
            backend.close()
        return choice, backend_type.loaded

    return run


def test_auto_is_float32_where_nothing_faster_is_native(chosen):
    choice, loaded = chosen()
    assert choice.backends[0].report.dtype is Dtype.FLOAT32
    assert loaded == [Dtype.FLOAT32, "closed"]
    assert choice.figures.max_abs_error < 1e-5


def test_auto_takes_the_fastest_format_that_passes_and_refuses_a_bad_int8(chosen, caplog):
    with caplog.at_level(logging.INFO, "infinity_emb"):
        choice, loaded = chosen(fast=(Dtype.INT8, Dtype.BFLOAT16))
    assert choice.backends[0].report.dtype is Dtype.BFLOAT16
    assert loaded == [Dtype.INT8, "closed", Dtype.BFLOAT16, "closed"]
    assert BAR <= choice.figures.min_cosine < 0.99999999
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 2
    assert "int8 fails the self-check: min cosine 0.98" in said[0]
    assert "bfloat16 instead" in said[1]


def test_a_format_that_was_asked_for_gives_way_too(chosen):
    choice, loaded = chosen(dtype=Dtype.INT8)
    assert choice.backends[0].report.dtype is Dtype.FLOAT32
    assert loaded == [Dtype.INT8, "closed", Dtype.FLOAT32, "closed"]


def test_a_lower_bar_keeps_it(chosen):
    choice, _ = chosen(dtype=Dtype.INT8, bar=0.97)
    assert choice.backends[0].report.dtype is Dtype.INT8


def test_results_that_are_not_finite_give_way(chosen):
    choice, loaded = chosen(fast=(Dtype.FP8,))
    assert choice.backends[0].report.dtype is Dtype.FLOAT32
    assert loaded[:2] == [Dtype.FP8, "closed"]


def test_auto_passes_over_a_format_that_is_not_offered(chosen):
    choice, loaded = chosen(fast=(Dtype.FLOAT16,))
    assert choice.backends[0].report.dtype is Dtype.FLOAT32
    assert loaded == [Dtype.FLOAT32, "closed"]


def test_what_was_asked_for_and_is_not_offered_is_refused(chosen):
    with pytest.raises(ConfigurationError, match="not offered here"):
        chosen(dtype=Dtype.FLOAT16)


def test_nothing_is_served_when_the_last_resort_fails_and_the_figures_are_told(chosen):
    with pytest.raises(LoadError, match=r"tiny/bert gives wrong results.*int8.*min cosine 0\.98.*0\.9999") as caught:
        chosen(dtype=Dtype.INT8, last=Dtype.INT8)
    assert caught.value.param == "fidelity"


def test_a_later_start_reads_the_figures_and_skips_what_failed(chosen, monkeypatch):
    first, _ = chosen(fast=(Dtype.INT8,))
    monkeypatch.setattr("infinity_emb.engine.fidelity.check.compute_reference", None)
    second, loaded = chosen(fast=(Dtype.INT8,))
    assert second.figures == first.figures
    assert loaded == [Dtype.FLOAT32, "closed"]


def test_without_a_check_what_was_asked_for_is_taken(spec):
    options = BackendOptions(Device.CPU, Dtype.INT8)
    backend_type = type("Noisy", (Noisy,), {"fast": (Dtype.BFLOAT16,), "loaded": []})
    assert attempts_of(options, backend_type, checked=False)[0].dtype is Dtype.INT8
    choice = choose([Attempt(Dtype.INT8, None)], lambda _: (backend_type(spec, options),), None, 0.0)
    assert choice.figures is None


@pytest.mark.parametrize("name", REAL_BACKENDS)
def test_backends_name_only_formats_that_they_know(name):
    backend = backend_class(InferenceEngine(name))
    found = backend.fast_dtypes(BackendOptions(Device.CPU, Dtype.AUTO))
    assert set(found) <= {Dtype.BFLOAT16, Dtype.FLOAT16}
