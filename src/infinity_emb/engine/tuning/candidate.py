"""Ways to compute a model that are worth a measurement here."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from infinity_emb.backends.base import BackendOptions
from infinity_emb.backends.registry import backend_class
from infinity_emb.errors import InfinityError
from infinity_emb.types import Device, Dtype, InferenceEngine

if TYPE_CHECKING:
    from infinity_emb.config.engine_args import EngineArgs

# Engines that compute any model, and the library without which they cannot.
_ENGINES = {
    InferenceEngine.OPENVINO: "openvino",
    InferenceEngine.ONNXRUNTIME: "onnxruntime",
    InferenceEngine.TORCH: "torch",
}
_CPU_ONLY = frozenset({InferenceEngine.OPENVINO})
BUDGETS_TOKENS = (256, 1024, 2048)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to compute a model.

    Attributes:
        engine: The library.
        dtype: Number format of the computation.
        max_batch_tokens: Tokens in one batch; None is what the engine takes by itself.
    """

    engine: InferenceEngine
    dtype: Dtype
    max_batch_tokens: int | None = None

    def applied(self, args: EngineArgs) -> EngineArgs:
        """The arguments with this way in them."""
        return replace(args, engine=self.engine, dtype=self.dtype, max_batch_tokens=self.max_batch_tokens)


def candidates(args: EngineArgs) -> list[Candidate]:
    """Every installed engine in float32 and in what the machine computes faster; what `args` names is left as it is."""
    engines = [name for name, library in _ENGINES.items() if importlib.util.find_spec(library) is not None]
    if args.device not in {Device.AUTO, Device.CPU}:
        engines = [name for name in engines if name not in _CPU_ONLY]
    if args.engine is not InferenceEngine.AUTO:
        engines = [args.engine]
    found = []
    for engine in engines:
        dtypes = (Dtype.FLOAT32, *_fast(engine, args)) if args.dtype is Dtype.AUTO else (args.dtype,)
        found += [Candidate(engine, dtype, args.max_batch_tokens) for dtype in dict.fromkeys(dtypes)]
    return found


def shapes(best: Candidate) -> list[Candidate]:
    """The same with other batches; none if a size was asked for."""
    if best.max_batch_tokens is not None:
        return []
    return [replace(best, max_batch_tokens=tokens) for tokens in BUDGETS_TOKENS]


def _fast(engine: InferenceEngine, args: EngineArgs) -> tuple[Dtype, ...]:
    try:
        return backend_class(engine).fast_dtypes(BackendOptions(args.device, Dtype.AUTO))
    except InfinityError:
        return ()  # the engine does not run on this device; measuring it in float32 says why
