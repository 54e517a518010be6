"""Whether a model fits into memory: asked before it is loaded, and told when a library finds that it does not."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import TYPE_CHECKING

from infinity_emb.backends.memory import GIB_BYTES, read_memory
from infinity_emb.errors import LoadError
from infinity_emb.models.safetensors_file import ITEM_BYTES
from infinity_emb.models.spec.weights import all_tensors, is_pickle
from infinity_emb.scheduler.memory import is_out_of_memory
from infinity_emb.types import Device, Dtype, InferenceEngine, Modality

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infinity_emb.backends.base import BackendOptions
    from infinity_emb.models.spec.model import ModelSpec

_COMPUTED_BYTES = {Dtype.FLOAT16: 2, Dtype.BFLOAT16: 2}
_TABLE = "embed"  # in the names of tables of which a batch reads single rows, from the mapped file


def weights_bytes(spec: ModelSpec, dtype: Dtype) -> int:
    """The least memory that the weights take while they are computed with.

    One copy, no wider than it is stored and no wider than it is computed; without tables that stay in the file.
    """
    most = _COMPUTED_BYTES.get(dtype, 4)
    stored = sum(
        math.prod(tensor.shape) * min(most, ITEM_BYTES[tensor.dtype])
        for name, tensor in all_tensors(spec.weights).items()
        if _TABLE not in name
    )
    return stored + sum(path.stat().st_size for path in spec.weights if is_pickle(path))


@contextmanager
def fitting(spec: ModelSpec, engine: InferenceEngine, options: BackendOptions) -> Iterator[None]:
    """Around the loading of a backend.

    The check before it is only for a CPU and the checkpoint's own weights: devices with memory of their own refuse by
    themselves.

    Raises:
        LoadError: The weights do not fit into memory; it says what they need and what is left.
    """
    on_cpu = engine is InferenceEngine.OPENVINO or options.device is Device.CPU
    counted = spec.reads is not Modality.TEXT  # the view that reads text counts the whole checkpoint
    memory = read_memory() if on_cpu and options.extra.get("onnx_file") is None and not counted else None
    if memory is not None and weights_bytes(spec, options.dtype) > memory.available_bytes:
        raise _refusal(spec, options, "")
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise _refusal(spec, options, f" The library says: {error}") from error


def _refusal(spec: ModelSpec, options: BackendOptions, more: str) -> LoadError:
    memory, dtype = read_memory(), options.dtype
    left = "" if memory is None else f", and {memory.available_bytes / GIB_BYTES:.3f} GiB of the machine's are left"
    return LoadError(
        f"{spec.checkpoint.model_id} does not fit into memory: its weights need at least "
        f"{weights_bytes(spec, dtype) / GIB_BYTES:.3f} GiB in {Dtype.FLOAT32 if dtype is Dtype.AUTO else dtype}{left}. "
        "Serve a smaller model or fewer of them, try --dtype bfloat16, or give the machine, the container or the "
        f"device more memory.{more}",
        param="model_id",
    )
