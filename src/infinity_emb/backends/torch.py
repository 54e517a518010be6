"""torch with transformers' own modelling code: every architecture, and GPUs."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

from infinity_emb import extras
from infinity_emb.backends.base import Arrays, Backend, BackendOptions, BackendReport, Layout, Pending
from infinity_emb.backends.layout import CPU_BATCH_TOKENS, GPU_BATCH_TOKENS, alone_layout, layout_of
from infinity_emb.backends.torch_device import choose_device, choose_dtype
from infinity_emb.backends.torch_forward import Forward, PackedForward, PaddedForward, packs
from infinity_emb.backends.torch_media import FeaturesForward
from infinity_emb.backends.torch_table import TableForward
from infinity_emb.backends.torch_words import make_head
from infinity_emb.errors import ConfigurationError, LoadError, NotReadyError
from infinity_emb.models.spec.rotary import depends_on_length
from infinity_emb.models.torch_module import load_module
from infinity_emb.types import Dtype, Modality

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

_PURPOSE = "--engine torch"


class _CudaRunning:
    """A forward pass on a CUDA stream; copies go through pinned memory, so that nothing waits until `result`.

    Written to torch's documented API; this project's tests have no GPU to run it.
    """

    def __init__(self, backend: TorchBackend, arrays: Arrays) -> None:
        torch, device = backend.torch, backend.device
        with torch.cuda.device(device):
            # pinned buffers must live until the copy is done, hence kept
            self._pinned = {name: torch.from_numpy(array).pin_memory() for name, array in arrays.items()}
            tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in self._pinned.items()}
            outputs = backend.forward(tensors)
            self._outputs = {name: output.to("cpu", non_blocking=True) for name, output in outputs.items()}
            self._done = torch.cuda.Event()
            self._done.record()

    def result(self) -> Arrays:
        self._done.synchronize()
        return {name: output.numpy() for name, output in self._outputs.items()}


class TorchBackend(Backend):
    """Runs transformers' module, then pooling or the scoring head.

    `options.extra` may hold `trust_remote_code` (bool) and `batch_tokens` (int).
    """

    name: ClassVar[str] = "torch"

    def __init__(self, spec: ModelSpec, options: BackendOptions) -> None:
        self.torch = torch = extras.require("torch", "torch", _PURPOSE)
        transformers = extras.require("transformers", "torch", _PURPOSE)
        if spec.static is not None:
            raise ConfigurationError(
                "--engine torch computes no static embeddings, which are a table and not a model of transformers; "
                "leave --engine out, or choose openvino or onnxruntime.",
                param="engine",
            )
        if spec.adapters:
            raise ConfigurationError(
                "--engine torch computes no adapters for tasks (config.json: lora_adaptations), whose code is remote; "
                "leave --engine out, or choose openvino or onnxruntime.",
                param="engine",
            )
        self.device = choose_device(torch, options)
        dtype = choose_dtype(torch, options.dtype, self.device)
        self._threads = options.threads if self.device.type == "cpu" else None
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="torch", initializer=self._enter_thread)
        packed = packs(spec, transformers.__version__)
        module: Any = None if spec.words is not None else self._load(spec, options, dtype, packed=packed)
        head = None if spec.classifies else make_head(torch, spec, module, self.device)  # None: logits are ready
        if spec.judge is not None:
            module = module.base_model
        forward = self._make_forward(spec, module, packed=packed, compiled=options.compile)
        self._forward: Forward | None = forward
        self._modules = head
        behind = self._modules.inputs if self._modules and spec.reads is Modality.TEXT else ()
        self._inputs = tuple(dict.fromkeys((*forward.inputs, *behind)))
        tokens = options.extra.get("batch_tokens") or (
            GPU_BATCH_TOKENS if self.device.type == "cuda" else CPU_BATCH_TOKENS
        )
        alone = bool(depends_on_length(spec))
        self._layout = alone_layout(spec.max_length, tokens) if alone else layout_of(spec, tokens, packed=packed)
        self._report = BackendReport(
            device=str(self.device),
            dtype=dtype,
            threads=self._executor.submit(torch.get_num_threads).result() if self.device.type == "cpu" else 0,
            version=f"torch {torch.__version__}, transformers {transformers.__version__}",
            graph="module",
        )

    @classmethod
    def fast_dtypes(cls, options: BackendOptions) -> tuple[Dtype, ...]:
        torch = extras.require("torch", "torch", _PURPOSE)
        if choose_device(torch, options).type != "cuda":
            return ()
        # bfloat16 never overflows, float16 is closer to float32 where it does not
        return (Dtype.BFLOAT16, Dtype.FLOAT16) if torch.cuda.is_bf16_supported() else (Dtype.FLOAT16,)

    @property
    def inputs(self) -> tuple[str, ...]:
        return self._inputs

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def report(self) -> BackendReport:
        return self._report

    def start(self, arrays: Arrays) -> Pending:
        if self.device.type == "cuda":
            return _CudaRunning(self, arrays)
        pending: Future[Arrays] = self._executor.submit(self._run, arrays)
        return pending

    def close(self) -> None:
        self._executor.shutdown(wait=True)
        self._forward = self._modules = None
        if self.device.type == "cuda":
            self.torch.cuda.empty_cache()

    def forward(self, tensors: dict[str, Any]) -> dict[str, Any]:
        """Outputs of one batch as float32 tensors on the device."""
        if self._forward is None:
            raise NotReadyError("The torch backend is closed.")
        with self.torch.inference_mode():
            value = self._forward(tensors)
            return {"logits": value.float()} if self._modules is None else self._modules(value, tensors)

    def _run(self, arrays: Arrays) -> Arrays:
        tensors = {name: self.torch.from_numpy(array).to(self.device) for name, array in arrays.items()}
        return {name: output.cpu().numpy() for name, output in self.forward(tensors).items()}

    def _load(self, spec: ModelSpec, options: BackendOptions, dtype: Dtype, *, packed: bool) -> Any:
        settings: dict[str, Any] = {"dtype": getattr(self.torch, dtype.value)}
        # Its kernels know padding but no mask; without it transformers takes torch's own fused attention.
        if not packed and self.device.type == "cuda" and dtype is not Dtype.FLOAT32 and find_spec("flash_attn"):
            settings["attn_implementation"] = "flash_attention_2"
        trusted = bool(options.extra.get("trust_remote_code"))
        try:
            return load_module(spec, _PURPOSE, trust_remote_code=trusted, **settings).to(self.device)
        except RuntimeError as error:
            if isinstance(error, LoadError):
                raise
            raise LoadError(f"torch cannot put the model on {self.device}: {error}") from error

    def _make_forward(self, spec: ModelSpec, module: Any, *, packed: bool, compiled: bool) -> Forward:
        if module is None:
            return TableForward(self.torch, spec, self.device)
        return _forward(self.torch, spec, module, packed=packed, compiled=compiled)

    def _enter_thread(self) -> None:
        """The number of threads is kept by the thread that computes."""
        if self._threads is not None:
            self.torch.set_num_threads(self._threads)


def _forward(torch: Any, spec: ModelSpec, module: Any, *, packed: bool, compiled: bool) -> Forward:
    if spec.media:
        return FeaturesForward(torch, spec, module, compiled=compiled)
    return (PackedForward if packed else PaddedForward)(torch, spec, module, compiled=compiled)
