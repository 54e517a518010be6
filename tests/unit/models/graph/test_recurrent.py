"""Convolutions and recurrent networks on token states: the formulas, text by text, whatever shares a row or a batch."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load_file

import tiny_modules
from forward import compute, compute_alone, opened, spec_of
from infinity_emb.models.preprocess.choice import make_preprocessor

ENGINES = ("openvino", "onnxruntime")
TEXTS = ["fox", "tea coffee fox", "quick brown fox hello World! tea", "nothing known", "lima " * 40, "e-mail world"]
CASES = {
    "convolutions": (("CNN",), {}),
    "recurrent": (("LSTM",), {"layers": 2}),
    "one way": (("LSTM",), {"both_ways": False}),
}


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


def convolve(folder, states):
    """Cross-correlation with zeros beyond both ends."""
    tensors = load_file(folder / "1_CNN/model.safetensors")
    parts = []
    for number, kernel in enumerate((1, 3, 5)):
        padded = np.pad(states, ((kernel // 2, kernel // 2), (0, 0)))
        weight, bias = tensors[f"convs.{number}.weight"], tensors[f"convs.{number}.bias"]
        rows = [np.einsum("oik,ki->o", weight, padded[place : place + kernel]) for place in range(len(states))]
        parts.append(np.array(rows) + bias)
    return np.concatenate(parts, axis=1)


def recur(folder, states, layers, both_ways):
    """Input, forget, cell and output gate, as torch documents them."""
    tensors = load_file(folder / "1_LSTM/model.safetensors")
    for layer in range(layers):
        parts = []
        for ending in ("", "_reverse") if both_ways else ("",):
            inner, outer, first, second = (
                tensors[f"encoder.{name}_l{layer}{ending}"] for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            hidden, cell, rows = np.zeros(5), np.zeros(5), []
            for state in states[::-1] if ending else states:
                enter, forget, new, leave = np.split(inner @ state + first + outer @ hidden + second, 4)
                cell = sigmoid(forget) * cell + sigmoid(enter) * np.tanh(new)
                hidden = sigmoid(leave) * np.tanh(cell)
                rows.append(hidden)
            parts.append(np.array(rows[::-1] if ending else rows))
        states = np.concatenate(parts, axis=1)
    return states


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", CASES)
def test_each_text_is_read_by_itself_and_by_the_formulas(case, engine, tmp_path):
    pytest.importorskip(engine)
    inside, choices = CASES[case]
    folder = tiny_modules.of_words(tmp_path, inside=inside, **choices)
    spec = spec_of(folder)
    table = load_file(folder / "0_WordEmbeddings/model.safetensors")["emb_layer.weight"].astype(np.float64)
    features = make_preprocessor(spec).texts(TEXTS)
    wanted = np.zeros((len(TEXTS), spec.dim))
    for row, item in zip(wanted, features, strict=True):
        if not item.empty:
            states = table[item.token_ids]
            ways = choices.get("both_ways", True)
            made = (
                convolve(folder, states)
                if inside == ("CNN",)
                else recur(folder, states, choices.get("layers", 1), ways)
            )
            mean = made.mean(axis=0)
            row[:] = mean / np.linalg.norm(mean)
    with opened(engine, spec) as backend:
        assert (backend.layout.segments_per_row is None) is (inside == ("CNN",))  # a network must not read on
        for found in (compute(backend, features), compute_alone(backend, features)):
            np.testing.assert_allclose(found["embedding"], wanted, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bag_counts_the_words_of_each_text(engine, tmp_path):
    pytest.importorskip(engine)
    spec = spec_of(tiny_modules.bag(tmp_path, inside=()))
    place = {word: number for number, word in enumerate(dict.fromkeys(tiny_modules.WORDS))}
    features = make_preprocessor(spec).texts(["fox tea fox", "nothing", "tea the", "Peru of"])
    wanted = np.zeros((4, spec.dim))
    wanted[0, place["fox"]], wanted[0, place["tea"]], wanted[2, place["tea"]] = 5.0, 1.0, 1.0
    wanted[3, place["Peru"]], wanted[3, place["of"]] = 3.25, -0.25
    with opened(engine, spec) as backend:
        assert (compute(backend, features)["embedding"] == wanted).all()
        assert (compute_alone(backend, features)["embedding"] == wanted).all()


def test_codes_come_without_rows_of_padding_segments(tmp_path):
    """Seven texts are padded up to eight segments."""
    pytest.importorskip("onnxruntime")
    spec = spec_of(tiny_modules.coded(tmp_path, "bert", kept=6))
    features = make_preprocessor(spec).texts([f"text number {number}" for number in range(7)])
    with opened("onnxruntime", spec) as backend:
        assert backend.layout.segments_per_row is None
        together, alone = compute(backend, features), compute_alone(backend, features)
    assert len(together["sparse"]) == 7
    for name in ("sparse", "sparse_index"):
        for one, other in zip(together[name], alone[name], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
    assert all(0 < len(weights) <= 6 and (weights > 0).all() for weights in together["sparse"])
