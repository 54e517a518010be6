"""OpenVINO: the default on a CPU."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from infinity_emb import extras
from infinity_emb.backends.base import Arrays, Backend, BackendOptions, BackendReport, Layout, Pending
from infinity_emb.backends.compiled import WORTHWHILE_BYTES, CompiledModels, Kept, identity
from infinity_emb.backends.cores import available_cores
from infinity_emb.backends.layout import CPU_BATCH_TOKENS, layout_of
from infinity_emb.config.environment import environ
from infinity_emb.errors import ConfigurationError, LoadError
from infinity_emb.models.hub import HubSettings
from infinity_emb.models.spec.rotary import depends_on_length
from infinity_emb.types import Device, Dtype

if TYPE_CHECKING:
    from typing import Any

    from infinity_emb.models.graph.graph import Graph, Weight
    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")
_PRECISIONS = {Dtype.FLOAT32: "f32", Dtype.BFLOAT16: "bf16", Dtype.FLOAT16: "f16"}
# Formats that a CPU may compute natively, and their names in the library's list of what it does.
_FAST = {Dtype.BFLOAT16: "BF16", Dtype.FLOAT16: "FP16"}


class _Running:
    """One asynchronous inference; its outputs are views that live until the request is used again."""

    def __init__(self, request: Any, arrays: Arrays, outputs: tuple[str, ...]) -> None:
        self._request = request
        self._arrays = arrays  # shared with the library, must outlive the inference
        self._outputs = outputs
        request.start_async(arrays, share_inputs=True)

    def result(self) -> Arrays:
        try:
            self._request.wait()
        except RuntimeError:
            self._forget_shapes()
            raise
        return {name: self._request.get_tensor(name).data for name in self._outputs}

    def _forget_shapes(self) -> None:
        """Without this, good batches shaped like the one before the failed one fail too (CPU plugin, seen in 2026.4).

        It skips nodes whose inputs are shaped as in the last good pass, whatever the failed one left in their outputs;
        a pass in which every axis is new reaches all of them.
        """
        smallest = {name: np.zeros([1] * array.ndim, array.dtype) for name, array in self._arrays.items()}
        self._request.start_async(smallest, share_inputs=True)  # `infer` would take another instance
        self._request.wait()


class OpenVinoBackend(Backend):
    """Runs the packed graph on a CPU."""

    name: ClassVar[str] = "openvino"

    def __init__(self, spec: ModelSpec, options: BackendOptions) -> None:
        openvino = extras.require("openvino", "openvino", "--engine openvino")
        if options.device not in (Device.AUTO, Device.CPU):
            raise ConfigurationError(
                f"--engine openvino runs on --device cpu here, not on {options.device}; use --engine torch for a GPU.",
                param="device",
            )
        dtype = Dtype.FLOAT32 if options.dtype is Dtype.AUTO else options.dtype
        if dtype not in _PRECISIONS:
            raise ConfigurationError(
                f"--dtype {dtype} is not offered by --engine openvino; choose one of auto, "
                f"{', '.join(name.value for name in _PRECISIONS)}.",
                param="dtype",
            )
        scaling = depends_on_length(spec)
        if scaling and dtype is not Dtype.FLOAT32:  # angles are computed with the batch, and no probe is that long
            raise ConfigurationError(
                f"--dtype {dtype}: the rotary scaling {scaling!r} of long texts loses its angles in 16 bits on "
                "--engine openvino; choose auto or float32.",
                param="dtype",
            )
        threads = options.threads or available_cores()
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": _PRECISIONS[dtype],
        }
        core = openvino.Core()
        # Compiling replaces the thread's signal stack with memory that the model owns, and closing models in
        # another order than they were made leaves the thread with freed memory: the next signal would crash the
        # process. So it happens in a thread that ends with it.
        with ThreadPoolExecutor(1, thread_name_prefix="openvino-compile") as once:
            kept, compiled, self._alive = once.submit(_obtain, openvino, core, spec, options, settings).result()
        # two requests take turns: outputs of one are read while the other runs
        self._requests = [compiled.create_infer_request(), compiled.create_infer_request()]
        self._graph_inputs, self._graph_outputs = kept.inputs, kept.outputs
        self._layout = layout_of(spec, options.extra.get("batch_tokens") or CPU_BATCH_TOKENS, packed=kept.packed)
        self._report = BackendReport(
            device="cpu",
            dtype=dtype,
            threads=threads,
            version=f"openvino {openvino.__version__.partition('-')[0]}",
            graph=kept.origin,
        )

    @classmethod
    def fast_dtypes(cls, options: BackendOptions) -> tuple[Dtype, ...]:  # noqa: ARG003 - the contract's signature
        openvino = extras.require("openvino", "openvino", "--engine openvino")
        native = openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
        return tuple(dtype for dtype, name in _FAST.items() if name in native)

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
        self._requests.reverse()
        return _Running(self._requests[0], arrays, self._graph_outputs)

    def close(self) -> None:
        self._requests = []
        self._alive = ()


def _obtain(
    openvino: Any, core: Any, spec: ModelSpec, options: BackendOptions, settings: dict[str, Any]
) -> tuple[Kept, Any, tuple[Any, ...]]:
    """The compiled model, kept from an earlier start or made now, and what must live as long as it."""
    if not options.extra.get("compile_cache"):
        return _compile(openvino, core, spec, options, settings)
    folder = options.cache_folder or HubSettings.from_environment(environ()).cache_folder
    store = CompiledModels(folder / "compiled")
    machine = [core.get_property("CPU", name) for name in ("FULL_DEVICE_NAME", "OPTIMIZATION_CAPABILITIES")]
    name = identity(spec, options.extra.get("onnx_file"), [openvino.__version__, *map(str, [settings, machine])])
    found = store.read(name)
    if found is not None:
        kept, blob = found
        try:
            tensor = openvino.Tensor(blob, shared_memory=True)
            compiled = core.import_model(tensor, "CPU", settings)
        except RuntimeError as error:
            _log.warning("OpenVINO refuses the compiled model that was kept (%s); it is compiled again", error)
            store.forget(name)
        else:
            return kept, compiled, (blob, tensor, compiled)
    kept, compiled, alive = _compile(openvino, core, spec, options, settings)
    blob = compiled.export_model().getbuffer()
    if len(blob) >= WORTHWHILE_BYTES:
        store.write(name, kept, blob)
    return kept, compiled, alive


def _compile(
    openvino: Any, core: Any, spec: ModelSpec, options: BackendOptions, settings: dict[str, Any]
) -> tuple[Kept, Any, tuple[Any, ...]]:
    from infinity_emb.models.graph import obtain_graph  # noqa: PLC0415 - not needed for a model that was kept

    onnx_file = options.extra.get("onnx_file")
    graph, origin = obtain_graph(
        spec, onnx_file=onnx_file, cache_folder=options.cache_folder, export=options.extra.get("export", True)
    )
    try:
        model = _read(openvino, core, graph)
        compiled = core.compile_model(model, "CPU", settings)
    except RuntimeError as error:
        raise LoadError(f"OpenVINO cannot compile the model: {error}") from error
    # The library reads embedding tables straight from the mapped file as long as the model lives.
    return Kept(graph.inputs, graph.outputs, graph.packed, origin), compiled, (graph.weights, model, compiled)


def _read(openvino: Any, core: Any, graph: Graph) -> Any:
    """Turn the graph into OpenVINO's model, its weights being constants over the mapped file."""
    model = core.read_model(graph.with_inputs)
    parameters = {parameter.get_friendly_name(): parameter for parameter in model.get_parameters()}
    for name, weight in graph.weights.items():
        parameter = parameters[name]
        constant = openvino.op.Constant(_tensor(openvino, weight))
        constant.set_friendly_name(name)
        parameter.output(0).replace(constant.output(0))
        model.remove_parameter(parameter)
    model.validate_nodes_and_infer_types()
    return model


def _tensor(openvino: Any, weight: Weight) -> Any:
    if weight.array.dtype == np.uint16:
        return openvino.Tensor(weight.array, list(weight.array.shape), openvino.Type.bf16)
    return openvino.Tensor(weight.array, shared_memory=True)
