"""What follows the token states of an embedder: pooling, Dense, LayerNorm, Normalize, as graph nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.graph.bag import bag_of_words
from infinity_emb.models.graph.columns import pad_to_columns
from infinity_emb.models.graph.convolution import convolve_all
from infinity_emb.models.graph.layer_mean import mean_of_layers
from infinity_emb.models.graph.recurrent import recur
from infinity_emb.models.graph.tensors import Tensors, module_tensors
from infinity_emb.models.graph.token_weights import total_weight, weigh
from infinity_emb.models.spec.bag import BagSpec
from infinity_emb.models.spec.convolution import ConvolutionSpec
from infinity_emb.models.spec.layer_mean import LayerMeanSpec
from infinity_emb.models.spec.model import (
    Activation,
    DenseSpec,
    LayerNormSpec,
    ModelSpec,
    ModuleSpec,
    NormalizeSpec,
    PoolingMode,
    PoolingSpec,
)
from infinity_emb.models.spec.recurrent import RecurrentSpec
from infinity_emb.models.spec.token_weights import TokenWeightsSpec, WeighedPoolingSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.models.graph.builder import GraphBuilder
    from infinity_emb.models.spec.token_heads import HeadSpec

# Modules that turn token states (or ids) into something else, in files of their own.
_ON_TOKENS: dict[type, Callable[[GraphBuilder, Any, str], str]] = {
    BagSpec: bag_of_words,
    ConvolutionSpec: convolve_all,
    LayerMeanSpec: mean_of_layers,
    RecurrentSpec: recur,
    TokenWeightsSpec: weigh,
}
LAYER_NORM_EPSILON = 1e-5  # default of torch.nn.LayerNorm


def apply_modules(builder: GraphBuilder, spec: ModelSpec, hidden: str) -> dict[str, tuple[str, int]]:
    """Turn token states `[slots, hidden]` into `embedding`, `norm` if it is unit length, and what heads give beside."""
    value, width = hidden, spec.hidden_size
    beside = head_outputs(builder, spec, hidden)
    for module in spec.modules[:-1] if spec.normalized else spec.modules:
        value, width = _apply(builder, module, value, width)
    if not spec.normalized:
        return {"embedding": (value, width), **beside}
    norm = builder.l2_norm(value)
    return {"embedding": (builder.node("Div", [value, norm]), width), "norm": (norm, 1), **beside}


def head_outputs(builder: GraphBuilder, spec: ModelSpec, hidden: str) -> dict[str, tuple[str, int]]:
    """What a checkpoint's heads make of the same token states: `token_weights` and `tokens`, a row a slot."""
    made: dict[str, tuple[str, int]] = {}
    if spec.heads and spec.heads.sparse:
        made["token_weights"] = builder.activation(_head(builder, spec, spec.heads.sparse, hidden), "relu"), 1
    if spec.heads and spec.heads.multi_vector:
        value = _head(builder, spec, spec.heads.multi_vector, hidden)
        made["tokens"] = builder.node("Div", [value, builder.l2_norm(value)]), spec.heads.multi_vector.width
    return made


def _head(builder: GraphBuilder, spec: ModelSpec, head: HeadSpec, hidden: str) -> str:
    # both may be called "weight", in files of one folder
    source = Tensors([head.weights], scope=f"{head.weights.parent.name}/{head.weights.stem}/")
    inputs = [hidden, builder.weight(f"{head.prefix}weight", (head.width, spec.hidden_size), source)]
    if head.bias:
        inputs.append(builder.weight(f"{head.prefix}bias", (head.width,), source))
    return builder.node("Gemm", inputs, transB=1)


def apply_all(builder: GraphBuilder, spec: ModelSpec, hidden: str) -> tuple[str, int]:
    """Token states through every module: the value, and its width."""
    value, width = hidden, spec.hidden_size
    for module in spec.modules:
        value, width = _apply(builder, module, value, width)
    return value, width


def token_vectors(builder: GraphBuilder, spec: ModelSpec, hidden: str) -> dict[str, tuple[str, int]]:
    """Turn token states into the output `tokens`: a vector a slot, padding slots included."""
    return {"tokens": apply_all(builder, spec, hidden)}


def _apply(builder: GraphBuilder, module: ModuleSpec, value: str, width: int) -> tuple[str, int]:
    if isinstance(module, PoolingSpec):
        return pool(builder, module, value), width * len(module.modes)
    if isinstance(module, DenseSpec):
        return _dense(builder, module, value), module.out_features
    if isinstance(module, LayerNormSpec):
        source = module_tensors(module.weights)
        inputs = [value, builder.weight("norm.weight", (width,), source), builder.weight("norm.bias", (width,), source)]
        return builder.node("LayerNormalization", inputs, axis=-1, epsilon=LAYER_NORM_EPSILON), width
    if type(module) in _ON_TOKENS:
        return _ON_TOKENS[type(module)](builder, module, value), getattr(module, "out_features", width)
    if isinstance(module, NormalizeSpec):
        return builder.node("Div", [value, builder.l2_norm(value)]), width
    raise CheckpointError(f"The module {type(module).__name__} has no graph builder. This is a bug.")


def pool(builder: GraphBuilder, module: PoolingSpec, hidden: str) -> str:
    """One vector a segment; several modes are concatenated in the order of `PoolingMode`."""
    total = total_weight(builder, module.token_weights) if isinstance(module, WeighedPoolingSpec) else None
    parts = [_pool_one(builder, mode, hidden, total) for mode in module.modes]
    return parts[0] if len(parts) == 1 else builder.node("Concat", parts, axis=-1)


def _pool_one(builder: GraphBuilder, mode: PoolingMode, hidden: str, weight: str | None) -> str:
    """`weight` is what means are divided by, `[segments, 1]`, if not by the number of tokens."""
    if mode is PoolingMode.CLS:
        return builder.gather(hidden, builder.input("first_index"))
    if mode is PoolingMode.LAST_TOKEN:
        return builder.gather(hidden, builder.input("last_index"))
    if mode is PoolingMode.MAX:
        tokens = builder.gather(hidden, builder.input("token_index"))
        return builder.node("ReduceMax", [tokens, builder.ints(1)], keepdims=0)
    weighted = mode is PoolingMode.WEIGHTED_MEAN
    total, count = _sums(builder, hidden, "position_weights" if weighted else "pool_weights", weight)
    if mode is PoolingMode.MEAN_SQRT_LEN:
        count = builder.node("Sqrt", [count])
    return builder.node("Div", [total, count])


def mean_of_tokens(builder: GraphBuilder, value: str) -> str:
    """Mean over each segment's tokens: `[slots, width]` → `[segments, width]`."""
    return builder.node("Div", list(_sums(builder, value, "pool_weights")))


def last_real_token(builder: GraphBuilder, padding_id: int | None) -> str:
    """Slot of each segment's last token that is not the padding id (texts may end in it); the first if all are."""
    if padding_id is None:
        return builder.input("last_index")
    slots = builder.input("token_index")
    ids = builder.gather(builder.flatten(builder.input("input_ids")), slots)
    # slots grow along a segment, so the largest one kept is the last
    first = builder.node("Unsqueeze", [builder.input("first_index"), builder.ints(1)])
    kept = builder.node("Where", [builder.node("Equal", [ids, builder.ints(padding_id)]), first, slots])
    return builder.node("ReduceMax", [kept, builder.ints(1)], keepdims=0)


def _sums(builder: GraphBuilder, value: str, weights: str, count: str | None = None) -> tuple[str, str]:
    """Weighted sum over each segment's tokens, and the sum of the weights unless `count` is given."""
    factors = builder.input(weights)
    total = builder.node("MatMul", [factors, pad_to_columns(builder, value, factors)])
    if count is None:
        count = builder.node("ReduceSum", [factors, builder.ints(1)], keepdims=1)
    return total, builder.node("Max", [count, builder.number(1e-9)])


def _dense(builder: GraphBuilder, module: DenseSpec, value: str) -> str:
    source = module_tensors(module.weights)
    shape = (module.out_features, module.in_features)
    inputs = [value, builder.weight("linear.weight", shape, source)]
    if module.bias:
        inputs.append(builder.weight("linear.bias", shape[:1], source))
    result = builder.node("Gemm", inputs, transB=1)
    if module.activation is Activation.SOFTMAX:
        result = builder.node("Softmax", [result], axis=-1)
    else:
        result = builder.activation(result, module.activation.value)
    if not module.residual:
        return result
    if module.in_features != module.out_features:
        value = builder.node("Gemm", [value, builder.weight("residual.weight", shape, source)], transB=1)
    return builder.add(result, value)
