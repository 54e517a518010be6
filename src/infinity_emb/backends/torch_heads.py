"""Hot path. What follows the token states of an embedder, in float32; the same steps as `models.graph.heads`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.backends.torch_tokens import TOKEN_STEPS, Weigher, inputs_of
from infinity_emb.backends.torch_weights import read_weight
from infinity_emb.models.spec.model import (
    Activation,
    DenseSpec,
    LayerNormSpec,
    ModelSpec,
    ModuleSpec,
    PoolingMode,
    PoolingSpec,
)
from infinity_emb.models.spec.token_weights import WeighedPoolingSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    Tensors: TypeAlias = "dict[str, Any]"
    Step: TypeAlias = "Callable[[Any, Tensors], Any]"

_POOLING_INPUTS = {
    PoolingMode.CLS: ("first_index",),
    PoolingMode.LAST_TOKEN: ("last_index",),
    PoolingMode.MAX: ("token_index",),
    PoolingMode.MEAN: ("segment_ids",),
    PoolingMode.MEAN_SQRT_LEN: ("segment_ids",),
    PoolingMode.WEIGHTED_MEAN: ("segment_ids", "position_ids"),
}


class Modules:
    """Pooling, Dense, LayerNorm and Normalize of a checkpoint.

    Args:
        torch: The module.
        spec: The checkpoint.
        device: Where its own weights go.
    """

    def __init__(self, torch: Any, spec: ModelSpec, device: Any) -> None:
        self._torch = torch
        self._normalized = spec.normalized
        modules = spec.modules[:-1] if spec.normalized else spec.modules
        self._steps: list[Step] = [self._step(module, device) for module in modules]
        needed = {"first_index", *inputs_of(spec)}  # the first is always there, since it tells the number of segments
        for mode in spec.pooling.modes if spec.pooling else ():
            needed.update(_POOLING_INPUTS[mode])
        if spec.pooling and (spec.words is not None or not spec.pooling.include_prompt):
            needed.add("pool_weights")
        self.inputs = tuple(sorted(needed))

    def __call__(self, hidden: Any, arrays: Tensors) -> Tensors:
        """Token states `[slots, hidden]` → `embedding` `[segments, dim]`, and `norm` if it was divided by it."""
        value = hidden.float()
        for step in self._steps:
            value = step(value, arrays)
        if not self._normalized:
            return {"embedding": value}
        norm = l2_norm(self._torch, value)
        return {"embedding": value / norm, "norm": norm}

    def _step(self, module: ModuleSpec, device: Any) -> Step:
        torch = self._torch
        if isinstance(module, PoolingSpec):
            return _Pooling(torch, module, device)
        if isinstance(module, DenseSpec):
            return self._dense(module, device)
        if type(module) in TOKEN_STEPS:
            step: Step = TOKEN_STEPS[type(module)](torch, module, device)
            return step
        if isinstance(module, LayerNormSpec):
            scale, shift = (read_weight(torch, module.weights, f"norm.{name}", device) for name in ("weight", "bias"))
            return lambda value, _: torch.nn.functional.layer_norm(value, (module.size,), scale, shift)
        return lambda value, _: value / l2_norm(torch, value)

    def _dense(self, module: DenseSpec, device: Any) -> Step:
        torch = self._torch
        weight = read_weight(torch, module.weights, "linear.weight", device)
        bias = read_weight(torch, module.weights, "linear.bias", device) if module.bias else None
        activate = _activation(torch, module.activation)
        linear = torch.nn.functional.linear
        if not module.residual:
            return lambda value, _: activate(linear(value, weight, bias))
        if module.in_features == module.out_features:
            return lambda value, _: activate(linear(value, weight, bias)) + value
        beside = read_weight(torch, module.weights, "residual.weight", device)
        return lambda value, _: activate(linear(value, weight, bias)) + linear(value, beside)


class _Pooling:
    """One vector a segment; several modes are concatenated in the order of `PoolingMode`."""

    def __init__(self, torch: Any, spec: PoolingSpec, device: Any) -> None:
        self._torch = torch
        self._modes = spec.modes
        self._weigher = Weigher(torch, spec.token_weights, device) if isinstance(spec, WeighedPoolingSpec) else None

    def __call__(self, hidden: Any, arrays: Tensors) -> Any:
        parts = [self._one(mode, hidden, arrays) for mode in self._modes]
        return parts[0] if len(parts) == 1 else self._torch.cat(parts, dim=-1)

    def _one(self, mode: PoolingMode, hidden: Any, arrays: Tensors) -> Any:
        if mode is PoolingMode.CLS:
            return hidden[arrays["first_index"]]
        if mode is PoolingMode.LAST_TOKEN:
            return hidden[arrays["last_index"]]
        if mode is PoolingMode.MAX:
            return hidden[arrays["token_index"]].amax(dim=1)
        weights = self._weights(arrays)[:, : len(hidden)]
        total = None if self._weigher is None else weights @ self._weigher.of(arrays)
        if mode is PoolingMode.WEIGHTED_MEAN:
            weights = weights * (arrays["position_ids"].reshape(1, -1) + 1)
        count = (weights.sum(dim=1, keepdim=True) if total is None else total).clamp(min=1e-9)
        return (weights @ hidden) / (count.sqrt() if mode is PoolingMode.MEAN_SQRT_LEN else count)

    def _weights(self, arrays: Tensors) -> Any:
        """`[segments, slots]`, made on the device: sending them would take longer than computing with them."""
        if "pool_weights" in arrays:
            return arrays["pool_weights"]
        segments = arrays["segment_ids"].reshape(1, -1)
        numbers = self._torch.arange(1, len(arrays["first_index"]) + 1, device=segments.device)
        return (segments == numbers[:, None]).float()


def l2_norm(torch: Any, value: Any) -> Any:
    """`max(‖x‖₂, 1e-12)`, the divisor of `torch.nn.functional.normalize`."""
    return torch.linalg.vector_norm(value, dim=-1, keepdim=True).clamp(min=1e-12)


def _activation(torch: Any, activation: Activation) -> Callable[[Any], Any]:
    if activation is Activation.IDENTITY:
        return lambda value: value
    if activation is Activation.SOFTMAX:
        return lambda value: torch.softmax(value, dim=-1)
    if activation in (Activation.TANH, Activation.SIGMOID):
        return getattr(torch, activation.value)  # type: ignore[no-any-return]
    return getattr(torch.nn.functional, activation.value)  # type: ignore[no-any-return]
