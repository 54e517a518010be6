"""A backend whose every misbehaviour can be asked for, and futures that count how often they were answered."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import numpy as np

from infinity_emb.backends.base import Backend, BackendReport, Layout
from infinity_emb.models.features import Features
from infinity_emb.scheduler.batcher import Batcher
from infinity_emb.scheduler.dispatcher import Dispatcher
from infinity_emb.scheduler.limits import Limits
from infinity_emb.scheduler.request import Request
from infinity_emb.types import Dtype, Priority

PACKED = Layout(widths=(4, 8, 16, 32), batch_tokens=64)
PADDED = Layout(widths=(4, 8, 16, 32), batch_tokens=64, segments_per_row=1)
WAIT_S = 20.0  # how long a test waits for something that must happen

# First token of an item → what the stub does with a batch that holds it.
RAISE_IN_START, RAISE_IN_RESULT, NAN_ROW, INF_ROW, DIE, HANG, WRONG_WIDTH, NAN_BATCH, ZERO_NORM = range(9001, 9010)


class Death(BaseException):
    """Something that no `except Exception` catches."""


class StubBackend(Backend):
    """A text's vector is [sum of its ids, its length, its first id, its last id]."""

    name = "stub"

    def __init__(self, layout: Layout = PACKED) -> None:
        self._layout = layout
        self.batches: list[list[int]] = []  # first ids of each batch, as computed
        self.entered = threading.Semaphore(0)  # released when a batch begins to compute
        self.gate = threading.Event()  # batches with HANG compute until it is set; all do while `gated`
        self.gated = False
        self.closed = 0

    @property
    def inputs(self):
        return ("input_ids", "segment_ids", "first_index", "last_index")

    @property
    def layout(self):
        return self._layout

    @property
    def report(self):
        return BackendReport("cpu", Dtype.FLOAT32, 1, "stub", "none")

    def start(self, arrays):
        ids, segments = arrays["input_ids"].ravel(), arrays["segment_ids"].ravel()
        count = int(segments.max())
        firsts = ids[arrays["first_index"]][:count].tolist()
        self.batches.append(firsts)
        self.entered.release()
        if RAISE_IN_START in firsts:
            raise ValueError("start broke")
        sums = np.bincount(segments, ids, len(arrays["first_index"]) + 1)[1:]
        lengths = arrays["last_index"] - arrays["first_index"] + 1
        columns = [sums, lengths, ids[arrays["first_index"]], ids[arrays["last_index"]]]
        vectors = np.stack(columns, axis=1).astype(np.float32)
        return _StubPending(self, firsts, vectors)

    def close(self):
        self.closed += 1


class _StubPending:
    def __init__(self, backend, firsts, vectors):
        self._backend, self._firsts, self._vectors = backend, firsts, vectors

    def result(self):
        if self._backend.gated or HANG in self._firsts:
            assert self._backend.gate.wait(WAIT_S)
        if DIE in self._firsts:
            raise Death("the thread is gone")
        if RAISE_IN_RESULT in self._firsts:
            raise RuntimeError("result broke")
        for marker, value in ((NAN_ROW, np.nan), (INF_ROW, -np.inf)):
            for row, first in enumerate(self._firsts):
                if first == marker:
                    self._vectors[row, 1] = value
        if NAN_BATCH in self._firsts:  # as in a real packed batch, where one text reaches its neighbours
            self._vectors[:] = np.nan
        if WRONG_WIDTH in self._firsts:
            return {"embedding": self._vectors[:, :2]}
        if ZERO_NORM in self._firsts:
            norms = [[0.0 if first == ZERO_NORM else 1.0] for first in self._firsts]
            return {"embedding": self._vectors, "norm": np.array(norms, np.float32)}
        return {"embedding": self._vectors}


class CountingFuture(Future):
    """Every attempt to answer asks `done` first; `answers` counts them."""

    def __init__(self):
        super().__init__()
        self.answers = 0

    def done(self):
        self.answers += 1
        return super().done()


def request_of(*items, priority=Priority.INTERACTIVE, deadline_s=None):
    """A request whose items are lists of token ids."""
    features = [Features(np.array(item, np.int64)) for item in items]
    return Request(features, CountingFuture(), None, priority, deadline_s)


def sized_request(*costs, priority=Priority.INTERACTIVE, arrived_s=0.0):
    """A request of items of so many tokens."""
    request = request_of(*([1] * cost for cost in costs), priority=priority)
    request.arrived_s = arrived_s
    return request


def expected(*items):
    """What the stub's results hold for these items."""
    return np.array([[sum(item), len(item), item[0], item[-1]] for item in items], np.float32)


def dispatcher_of(layout=PACKED, *, max_items=32, items=10_000, tokens=1_000_000):
    return Dispatcher(Batcher(layout, max_items), Limits(items, tokens))
