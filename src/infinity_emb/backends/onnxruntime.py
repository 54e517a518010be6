"""ONNX Runtime on CPU, and on CUDA where its GPU build is installed."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from infinity_emb import extras
from infinity_emb.backends.base import Arrays, Backend, BackendOptions, BackendReport, Layout, Pending
from infinity_emb.backends.cores import available_cores
from infinity_emb.backends.layout import CPU_BATCH_TOKENS, GPU_BATCH_TOKENS, layout_of
from infinity_emb.errors import ConfigurationError, LoadError
from infinity_emb.models.graph import Graph, obtain_graph
from infinity_emb.types import Device, Dtype

if TYPE_CHECKING:
    from infinity_emb.models.graph.graph import Weight
    from infinity_emb.models.spec.model import ModelSpec

_PROVIDERS = {
    Device.CPU: "CPUExecutionProvider",
    Device.CUDA: "CUDAExecutionProvider",
    Device.TENSORRT: "TensorrtExecutionProvider",
    Device.MPS: "CoreMLExecutionProvider",
}
_EXTERNAL_TYPES = {np.dtype(np.uint16): 16}


class OnnxRuntimeBackend(Backend):
    """Runs the packed graph in one session."""

    name: ClassVar[str] = "onnxruntime"

    def __init__(self, spec: ModelSpec, options: BackendOptions) -> None:
        runtime = extras.require("onnxruntime", "onnxruntime", "--engine onnxruntime")
        if options.dtype not in (Dtype.AUTO, Dtype.FLOAT32):
            raise ConfigurationError(
                f"--dtype {options.dtype} is not offered by --engine onnxruntime; choose auto or float32.",
                param="dtype",
            )
        device, provider = _choose_provider(runtime, options.device)
        onnx_file = options.extra.get("onnx_file")
        graph, origin = obtain_graph(
            spec, onnx_file=onnx_file, cache_folder=options.cache_folder, export=options.extra.get("export", True)
        )
        threads = options.threads or available_cores()
        self._session = _session(runtime, graph, provider, threads, optimize=options.extra.get("optimize", True))
        self._graph_inputs, self._graph_outputs = graph.inputs, graph.outputs
        on_cpu = device is Device.CPU
        best = CPU_BATCH_TOKENS if on_cpu else GPU_BATCH_TOKENS
        self._layout = layout_of(spec, options.extra.get("batch_tokens") or best, packed=graph.packed)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="onnxruntime")
        self._report = BackendReport(
            device=str(device),
            dtype=Dtype.FLOAT32,
            threads=threads if on_cpu else 0,
            version=f"onnxruntime {runtime.__version__}",
            graph=origin,
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._graph_inputs

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def report(self) -> BackendReport:
        return self._report

    def start(self, arrays: Arrays) -> Pending:
        pending: Future[Arrays] = self._thread.submit(self._run, arrays)
        return pending

    def close(self) -> None:
        self._thread.shutdown(wait=True)
        self._session = None

    def _run(self, arrays: Arrays) -> Arrays:
        return dict(zip(self._graph_outputs, self._session.run(self._graph_outputs, arrays), strict=True))


def _choose_provider(runtime: Any, device: Device) -> tuple[Device, str]:
    available = runtime.get_available_providers()
    if device is Device.AUTO:
        for candidate in (Device.CUDA, Device.CPU):
            if _PROVIDERS[candidate] in available:
                return candidate, _PROVIDERS[candidate]
    provider = _PROVIDERS.get(device)
    if provider is None or provider not in available:
        usable = [str(name) for name, provider in _PROVIDERS.items() if provider in available]
        raise ConfigurationError(
            f"--device {device} is not offered by the installed onnxruntime {runtime.__version__}; it offers "
            f'{", ".join(usable)}. For NVIDIA GPUs: pip install "infinity_emb[onnxruntime-gpu]".',
            param="device",
        )
    return device, provider


def _session(runtime: Any, graph: Graph, provider: str, threads: int, *, optimize: bool) -> Any:
    settings = runtime.SessionOptions()
    if not optimize:
        settings.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    settings.intra_op_num_threads = threads
    settings.inter_op_num_threads = 1
    settings.log_severity_level = 3
    values = [_value(runtime, weight) for weight in graph.weights.values()]
    settings.add_external_initializers(list(graph.weights), values)
    try:
        return runtime.InferenceSession(graph.with_initializers, settings, providers=[provider])
    except RuntimeError as error:
        raise LoadError(f"ONNX Runtime cannot load the model: {error}") from error


def _value(runtime: Any, weight: Weight) -> Any:
    if weight.array.dtype in _EXTERNAL_TYPES:
        return runtime.OrtValue.ortvalue_from_numpy_with_onnx_type(weight.array, weight.onnx_type)
    return runtime.OrtValue.ortvalue_from_numpy(weight.array)
