"""What every backend promises; each runs the same tests on the same tiny checkpoints."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tiny
from forward import (
    LIBRARIES,
    REAL_BACKENDS,
    batches,
    compute,
    compute_alone,
    features,
    in_width,
    opened,
    options,
    spec_of,
)
from infinity_emb.backends.registry import backend_class
from infinity_emb.errors import ConfigurationError
from infinity_emb.scheduler.runner import Runner
from infinity_emb.types import Device, Dtype, InferenceEngine

TOLERANCE = 1e-6
TOLERANCE_OF_RAW = 5e-6  # logits and lengths, which are several in size
LONGEST = tiny.POSITIONS
MODES = ("cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
MIXES = {
    "one": [7],
    "shortest and longest": [1, LONGEST],
    "only the shortest": [1] * 70,
    "only the longest": [LONGEST] * 9,
    "one of each length": list(range(1, LONGEST + 1)),
    "falling": list(range(40, 0, -3)),
    "alternating": [3, 60] * 12,
    "exactly full rows": [16, 16, 32, 64, 8, 8, 16, 32],
    "one long among many short": [2] * 20 + [63] + [4] * 20,
}


@pytest.fixture(scope="session", params=[*REAL_BACKENDS, "dummy"])
def name(request):
    if request.param in LIBRARIES:
        pytest.importorskip(LIBRARIES[request.param])
    return request.param


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """A function that builds a tiny checkpoint once."""
    made = {}

    def folder(kind="bert", **choices):
        key = (kind, *sorted(choices.items()))
        if key not in made:
            made[key] = tiny.tiny(kind, tmp_path_factory.mktemp(kind), **choices)
        return made[key]

    return folder


@pytest.fixture(scope="session")
def embedder(name, folders):
    with opened(name, spec_of(folders())) as backend:
        yield backend


@pytest.fixture(scope="session", params=[("relevant",), ("a", "b", "c")], ids=["one label", "three labels"])
def scorer(request, name, folders):
    with opened(name, spec_of(folders(labels=request.param))) as backend:
        yield backend, len(request.param)


def many(lengths, **kind):
    return [features(length, seed, **kind) for seed, length in enumerate(lengths)]


def assert_close(one, other):
    assert one.keys() == other.keys()
    for output in one:
        unit = output == "embedding" and "norm" in one
        tolerance = TOLERANCE if unit else TOLERANCE_OF_RAW
        np.testing.assert_allclose(one[output], other[output], rtol=0, atol=tolerance, err_msg=output)


def test_an_embedder_gives_unit_vectors_and_the_length_they_had(embedder, folders):
    outputs = compute(embedder, many([5, 9, 30]))
    assert set(outputs) == {"embedding", "norm"}
    assert outputs["embedding"].shape == (3, spec_of(folders()).dim)
    assert outputs["norm"].shape == (3, 1)
    assert {array.dtype for array in outputs.values()} == {np.dtype(np.float32)}
    np.testing.assert_allclose(np.linalg.norm(outputs["embedding"], axis=1), 1, atol=1e-6)
    assert (outputs["norm"] > 0).all()


def test_an_embedder_without_normalize_gives_no_norm(name, folders):
    if name == "dummy":
        pytest.skip("the dummy's vectors are always unit length")
    with opened(name, spec_of(folders(normalize=False))) as plain, opened(name, spec_of(folders())) as unit:
        raw, outputs = compute(plain, many([5, 9])), compute(unit, many([5, 9]))
    assert set(raw) == {"embedding"}
    np.testing.assert_allclose(outputs["embedding"] * outputs["norm"], raw["embedding"], rtol=0, atol=1e-5)


def test_different_texts_get_different_vectors_in_the_order_they_came(embedder):
    items = many([5, 40, 2, 17, 5, 5, 63, 1, 30])
    outputs = compute(embedder, items)["embedding"]
    assert len(np.unique(outputs.round(4), axis=0)) == len(items)
    backwards = compute(embedder, items[::-1])["embedding"]
    np.testing.assert_allclose(backwards[::-1], outputs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("mix", MIXES)
def test_a_text_gets_the_same_vector_alone_and_in_every_mix_of_lengths(embedder, mix):
    items = many(MIXES[mix])
    assert_close(compute(embedder, items), compute_alone(embedder, items))


@pytest.mark.parametrize("kind", ["bert", "roberta"])
@pytest.mark.parametrize("pooling", [*MODES, MODES], ids=[*MODES, "all"])
def test_every_pooling_mode_is_the_same_alone_and_mixed(name, folders, kind, pooling):
    if name == "dummy":
        pytest.skip("the dummy has no pooling")
    items = many([3, 60, 1, 17, 33, 2, 64, 5])
    with opened(name, spec_of(folders(kind, pooling=pooling, normalize=False))) as backend:
        assert_close(compute(backend, items), compute_alone(backend, items))


def test_the_tokens_of_a_prompt_that_pooling_leaves_out_do_not_count(name, folders):
    if name == "dummy":
        pytest.skip("the dummy has no pooling")
    items = many([12, 30, 20])
    marked = many([12, 30, 20])
    for item in marked:
        item.prompt_tokens = 4
    modes = ("cls", "max", "mean", "weightedmean")
    with opened(name, spec_of(folders(pooling=modes, include_prompt=False, normalize=False))) as backend:
        without = compute(backend, marked)
        assert_close(without, compute_alone(backend, marked))
        away = abs(without["embedding"] - compute(backend, items)["embedding"]).reshape(len(items), len(modes), -1)
        assert (away.max(axis=2) > 1e-3).all()


@pytest.mark.parametrize("length", [1, 5, 16])
def test_padding_changes_nothing(embedder, length):
    widths = embedder.layout.widths
    item = features(length)
    narrow = in_width(embedder, item, next(width for width in widths if width >= length))
    for width in widths[1:]:
        assert_close(in_width(embedder, item, width), narrow)


def test_token_types_matter(name, folders):
    if name == "dummy":
        pytest.skip("the dummy looks at token ids alone")
    for choices in ({}, {"labels": ("relevant",)}):
        with opened(name, spec_of(folders(**choices))) as backend:
            plain, typed = many([20, 7]), many([20, 7], types=True)
            mixed = compute(backend, [plain[0], typed[0], plain[1], typed[1]])
            output = mixed["logits" if choices else "embedding"]
            assert abs(output[0] - output[1]).max() > 1e-3
            assert_close(mixed, compute_alone(backend, [plain[0], typed[0], plain[1], typed[1]]))


def test_a_scorer_gives_one_number_a_label(scorer):
    backend, labels = scorer
    outputs = compute(backend, many([5, 64, 30]))
    assert set(outputs) == {"logits"}
    assert outputs["logits"].shape == (3, labels)
    assert outputs["logits"].dtype == np.float32


@pytest.mark.parametrize("mix", MIXES)
def test_a_scorer_gives_the_same_logits_alone_and_in_every_mix_of_lengths(scorer, mix):
    backend, _ = scorer
    items = many(MIXES[mix], types=True)
    assert_close(compute(backend, items), compute_alone(backend, items))


def test_outputs_stay_readable_while_the_next_batch_computes(embedder):
    runner = Runner(embedder)
    expected = compute(embedder, many([9, 4]))
    first = next(batches(embedder, many([9, 4])))
    second = next(batches(embedder, many([5, 9], types=True)[::-1]))
    held = runner.start(runner.collate(first)).result()
    running = runner.start(runner.collate(second))
    assert_close({output: array[:2] for output, array in held.items()}, expected)
    assert len(running.result()["embedding"]) >= 2


def test_two_backends_of_one_process_do_not_disturb_each_other(name, folders):
    items = many([9, 33, 4])
    with opened(name, spec_of(folders())) as one, opened(name, spec_of(folders(seed=1))) as other:
        alone = compute(one, items)
        for _ in range(3):
            compute(other, items)
            assert_close(compute(one, items), alone)


def test_a_batch_that_cannot_be_computed_leaves_the_next_one_right(embedder):
    expected = compute(embedder, many([9]))
    runner = Runner(embedder)
    batch = next(batches(embedder, many([6, 30])))
    broken = runner.collate(batch)
    broken["input_ids"] = broken["input_ids"][:0]
    with pytest.raises(Exception):  # noqa: B017, PT011 - which error is the library's own affair
        runner.finish(batch, runner.start(broken))
    assert_close(compute(embedder, many([9])), expected)


def test_closing_twice_is_fine(name, folders):
    backend = backend_class(InferenceEngine(name))(spec_of(folders()), options())
    backend.close()
    backend.close()


def test_the_layout_holds_the_longest_text_and_no_wider(embedder, folders):
    layout = embedder.layout
    assert layout.widths[-1] == spec_of(folders()).max_length
    assert all(narrow < wide for narrow, wide in itertools.pairwise(layout.widths))
    assert layout.segments_per_row in {None, 1}


def test_the_report_names_device_dtype_and_library(embedder, name):
    report = embedder.report
    assert report.device == "cpu"
    assert report.dtype is Dtype.FLOAT32
    assert name in report.version
    assert report.graph


@pytest.mark.parametrize("name", REAL_BACKENDS)
@pytest.mark.parametrize("dtype", [Dtype.INT8, Dtype.FP8])
def test_a_dtype_that_is_not_offered_is_refused_with_those_that_are(name, dtype, folders):
    pytest.importorskip(LIBRARIES[name])
    with pytest.raises(ConfigurationError, match=f"--dtype {dtype} .*choose .*float32") as caught:
        backend_class(InferenceEngine(name))(spec_of(folders()), options(dtype=dtype))
    assert caught.value.param == "dtype"


@pytest.mark.parametrize("name", REAL_BACKENDS)
@pytest.mark.parametrize("device", [Device.CUDA, Device.MPS, Device.TENSORRT, Device.NPU])
def test_a_device_that_is_not_there_is_refused_with_what_to_do(name, device, folders):
    pytest.importorskip(LIBRARIES[name])
    if name == "torch" and device in {Device.CUDA, Device.MPS}:
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available() or torch.backends.mps.is_available():
            pytest.skip("this machine has a GPU")
    with pytest.raises(ConfigurationError, match=f"--device {device}|not on {device}") as caught:
        backend_class(InferenceEngine(name))(spec_of(folders()), options(device=device))
    assert caught.value.param == "device"
