"""Drives a backend without threads: features in, outputs in the same order."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import contextmanager

import numpy as np

from infinity_emb.backends.base import BackendOptions
from infinity_emb.backends.registry import backend_class
from infinity_emb.models.features import Features
from infinity_emb.models.hub.checkpoint import Checkpoint
from infinity_emb.models.spec import read_spec
from infinity_emb.scheduler.batch import Batch
from infinity_emb.scheduler.batcher import Batcher
from infinity_emb.scheduler.request import Request
from infinity_emb.scheduler.runner import Runner
from infinity_emb.types import Device, Dtype, InferenceEngine, Priority

# Backends that compute a real model on any machine.
REAL_BACKENDS = ("openvino", "onnxruntime", "torch")
LIBRARIES = {name: name for name in REAL_BACKENDS}


def spec_of(folder):
    return read_spec(Checkpoint(folder, str(folder), "local folder"))


def options(**changes):
    """One thread: results must not depend on it, and a busy machine is slowest with several."""
    return BackendOptions(**{"device": Device.AUTO, "dtype": Dtype.FLOAT32, "threads": 1, **changes})


@contextmanager
def opened(name, spec, **changes):
    backend = backend_class(InferenceEngine(name))(spec, options(**changes))
    try:
        yield backend
    finally:
        backend.close()


def features(length, seed=0, *, types=False):
    """One made-up text of so many tokens."""
    chance = np.random.default_rng(seed)
    ids = chance.integers(5, 60, length)
    return Features(ids, (np.arange(length) * 2 // max(length, 1)) if types else None)


def request(items):
    return Request(items, Future(), None, Priority.BULK)


def batches(backend, items, max_items=64):
    """How the scheduler would batch them."""
    batcher = Batcher(backend.layout, max_items)
    batcher.add(request(items))
    while (batch := batcher.next_batch(0.0)) is not None:
        yield batch


def compute(backend, items, max_items=64):
    """Outputs `[items, width]` by name, in the order of `items`."""
    runner = Runner(backend)
    rows: dict[str, dict[int, np.ndarray]] = {}
    for batch in batches(backend, items, max_items):
        for name, array in runner.run(batch).items():
            found = rows.setdefault(name, {})
            for (_, position), row in zip(batch.entries, array.copy(), strict=True):
                found[position] = row
    return {name: np.stack([found[position] for position in range(len(items))]) for name, found in rows.items()}


def compute_alone(backend, items):
    """As `compute`, every item a batch of its own."""
    return compute(backend, items, max_items=1)


def in_width(backend, item, width):
    """Arrays of one item in a row of a given width."""
    batch = Batch([(request([item]), 0)], [0], (1, width), Priority.BULK, full=True)
    runner = Runner(backend)
    return {name: array.copy() for name, array in runner.run(batch).items()}
