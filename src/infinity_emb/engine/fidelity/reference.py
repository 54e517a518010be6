"""What the probes should give: token states in float32, one text a row, and everything behind them in NumPy."""

from __future__ import annotations

import importlib.util
import logging
import os
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.backends.base import BackendOptions
from infinity_emb.backends.registry import backend_class
from infinity_emb.engine.fidelity import tail
from infinity_emb.engine.fidelity.rows import OUTPUTS, sampled
from infinity_emb.errors import InfinityError
from infinity_emb.models.safetensors_file import ITEM_BYTES, read_header
from infinity_emb.scheduler.batch import Batch
from infinity_emb.scheduler.collate import Collator
from infinity_emb.scheduler.request import Request
from infinity_emb.types import Device, Dtype, InferenceEngine, Priority, Task

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from infinity_emb.backends.base import Backend
    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")
# Token states come from the first of these that can make them.
_ENGINES = (InferenceEngine.OPENVINO, InferenceEngine.TORCH)
# What has no tail in NumPy comes whole from one of these, the one least like the usual engine first.
_WHOLE_ENGINES = (InferenceEngine.TORCH, InferenceEngine.ONNXRUNTIME, InferenceEngine.OPENVINO)
# Engines whose library need not be there, and its name.
_OPTIONAL = {InferenceEngine.TORCH: "torch", InferenceEngine.ONNXRUNTIME: "onnxruntime"}
# A second copy of the weights in float32 must not push the first one out of memory.
MEMORY_SHARE = 0.4


@dataclass(frozen=True, slots=True)
class Reference:
    """Right results of some inputs.

    Attributes:
        outputs: `[inputs, dim]` or `[inputs, labels]`, float64; of a vector a token some of them, `[…, dim]`.
        words: How they were made.
    """

    outputs: NDArray[np.float64]
    words: str


def compute_reference(spec: ModelSpec, options: BackendOptions, items: Sequence[Features]) -> Reference | None:
    """Results of inputs, each computed alone; None where no independent way is known, which is logged.

    Args:
        spec: The checkpoint.
        options: Those of the backend that is checked: threads, folders and permissions are taken from them.
        items: The inputs.
    """
    if not _fits(spec):
        _log.warning("no self-check: a float32 copy of the weights would take too much of this machine's memory")
        return None
    if not tail.has_tail(spec):
        if not spec.gives_tokens:
            return _whole(spec, options, items)
        _log.warning("no self-check: what follows the token states of %s is not known here", spec.checkpoint.model_id)
        return None
    front = tail.front_of(spec)
    bare = replace(  # a backend without pooling returns token states
        spec, task=Task.EMBED, modules=front, labels=(), heads=None
    )
    spec = replace(spec, modules=spec.modules[len(front) :])
    for engine, backend in _open(bare, options):
        try:
            states = [_alone(backend, item)["embedding"][: item.cost] for item in items]
        finally:
            backend.close()
        if spec.task is Task.EMBED:
            rows = [tail.embed(spec, one, item.prompt_tokens)[None] for one, item in zip(states, items, strict=True)]
        elif spec.gives_tokens:
            rows = [tail.tokens(spec, sampled(one)) for one in states]
        else:
            rows = [tail.score(spec, one)[None] for one in states]
        return Reference(np.concatenate(rows), f"{engine} float32, one text a row, then NumPy")
    return None


def _whole(spec: ModelSpec, options: BackendOptions, items: Sequence[Features]) -> Reference | None:
    """Results of a head that is not written in NumPy: from the graph, but in float32 and alone."""
    coded = spec.sparse is not None and spec.sparse.codes is not None
    output = "logits" if spec.labels else "codes" if coded else OUTPUTS[spec.task]
    for engine, backend in _open(spec, options):
        try:
            rows = [_alone(backend, item)[output][0].astype(np.float64) for item in items]
        finally:
            backend.close()
        return Reference(np.stack(rows), f"{engine} float32, one text a row")
    return None


def _open(spec: ModelSpec, options: BackendOptions) -> Iterator[tuple[InferenceEngine, Backend]]:
    """Backends that compute the checkpoint in float32 on the CPU, loaded when asked for."""
    extra: dict[str, Any] = {**options.extra, "compile_cache": False}  # the reference owes nothing to kept results
    if spec.weights:
        extra["onnx_file"] = None  # an ONNX file beside the weights is what is checked; without weights it is the model
    plain = BackendOptions(
        Device.CPU, Dtype.FLOAT32, threads=options.threads, cache_folder=options.cache_folder, extra=extra
    )
    for engine in _WHOLE_ENGINES if spec.media else _ENGINES:
        if engine in _OPTIONAL and importlib.util.find_spec(_OPTIONAL[engine]) is None:
            continue
        try:
            backend = backend_class(engine)(spec, plain)
        except InfinityError as error:
            _log.debug("no reference through %s: %s", engine, error)
            continue
        yield engine, backend
    _log.warning("no self-check: nothing here computes %s in float32 apart from it", spec.checkpoint.model_id)


def _alone(backend: Backend, item: Features) -> dict[str, NDArray[Any]]:
    """Outputs of one input in a row of its own length."""
    request = Request([item], Future(), None, Priority.BULK)
    batch = Batch([(request, 0)], [0], (1, item.cost), Priority.BULK, full=True)
    outputs = backend.start(Collator(backend.inputs, backend.layout)(batch)).result()
    return {name: array.copy() for name, array in outputs.items()}


def _fits(spec: ModelSpec) -> bool:
    if not hasattr(os, "sysconf"):
        return True
    memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    files = [file for file in spec.weights if file.suffix == ".safetensors"]
    tensors = [info for file in files for info in read_header(file).values()]
    copy_bytes = sum((info.stop - info.start) // ITEM_BYTES[info.dtype] * 4 for info in tensors)
    return copy_bytes < MEMORY_SHARE * memory_bytes
