"""What follows the token states of one text, in plain NumPy and float64: written apart from graphs and backends.

Sources: the modules of sentence-transformers, the classification heads of transformers.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from infinity_emb.errors import CheckpointError
from infinity_emb.models.safetensors_file import load_tensor, read_header
from infinity_emb.models.spec.convolution import ConvolutionSpec
from infinity_emb.models.spec.layer_mean import LayerMeanSpec
from infinity_emb.models.spec.model import Activation, DenseSpec, LayerNormSpec, NormalizeSpec, PoolingMode, PoolingSpec
from infinity_emb.models.spec.recurrent import RecurrentSpec
from infinity_emb.models.spec.token_weights import WeighedPoolingSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from infinity_emb.models.spec.model import ModelSpec, ModuleSpec

    Numbers = NDArray[np.float64]

_KNOWN_MODULES = (PoolingSpec, DenseSpec, LayerNormSpec, NormalizeSpec)
_OF_BACKENDS = (LayerMeanSpec, ConvolutionSpec, RecurrentSpec)  # left to backends, in float32 and alone


class _Layer(NamedTuple):
    """One linear layer of a scoring head: name of its tensors and what comes behind."""

    name: str
    activation: Activation


# model_type → the head on the state of the first token
_HEADS: dict[str, tuple[_Layer, ...]] = {
    "bert": (_Layer("pooler.dense", Activation.TANH), _Layer("classifier", Activation.IDENTITY)),
    "distilbert": (_Layer("pre_classifier", Activation.RELU), _Layer("classifier", Activation.IDENTITY)),
    "electra": (_Layer("classifier.dense", Activation.GELU), _Layer("classifier.out_proj", Activation.IDENTITY)),
    **dict.fromkeys(
        ("roberta", "xlm-roberta", "camembert"),
        (_Layer("classifier.dense", Activation.TANH), _Layer("classifier.out_proj", Activation.IDENTITY)),
    ),
}


def has_tail(spec: ModelSpec) -> bool:
    """Whether everything behind the token states is known here."""
    files = [module.weights for module in spec.modules if isinstance(module, (DenseSpec, LayerNormSpec))]
    functions = {module.activation for module in spec.modules if isinstance(module, DenseSpec)}
    if not functions <= set(_FUNCTIONS):
        return False
    if spec.judge is not None or spec.sparse is not None or isinstance(spec.pooling, WeighedPoolingSpec):
        return False
    if spec.labels:
        return spec.model_type in _HEADS and bool(spec.weights) and all(map(_readable, spec.weights))
    return (
        (spec.pooling is not None or spec.gives_tokens)
        and all(isinstance(m, _KNOWN_MODULES) for m in spec.modules[len(front_of(spec)) :])
        and all(map(_readable, files))
    )


def front_of(spec: ModelSpec) -> tuple[ModuleSpec, ...]:
    """The first modules, up to the last one that is not known here and acts on token states."""
    places = [number for number, module in enumerate(spec.modules, 1) if isinstance(module, _OF_BACKENDS)]
    return spec.modules[: places[-1]] if places else ()


def embed(spec: ModelSpec, states: Numbers, prompt_tokens: int) -> Numbers:
    """The vector `[dim]` of one text from its token states `[tokens, hidden]`."""
    value = states.astype(np.float64)
    for module in spec.modules:
        value = _apply(module, value, prompt_tokens)
    return value


def tokens(spec: ModelSpec, states: Numbers) -> Numbers:
    """The vectors `[tokens, dim]` of one text from its token states, of a model that gives one a token."""
    return np.stack([embed(spec, one, 0) for one in states])


def score(spec: ModelSpec, states: Numbers) -> Numbers:
    """The logits `[labels]` of one input from its token states `[tokens, hidden]`."""
    value: Numbers = states[0].astype(np.float64)
    for layer in _HEADS[spec.model_type]:
        weight, bias = (_tensor(spec.weights, f"{layer.name}.{part}") for part in ("weight", "bias"))
        value = _FUNCTIONS[layer.activation](np.asarray(weight @ value + bias))
    return value


def _apply(module: ModuleSpec, value: Numbers, prompt_tokens: int) -> Numbers:
    if isinstance(module, PoolingSpec):
        kept = value if module.include_prompt else value[prompt_tokens:]
        return np.concatenate([_pool(mode, value, kept, prompt_tokens) for mode in module.modes])
    if isinstance(module, DenseSpec):
        result = value @ load_tensor(module.weights, "linear.weight").astype(np.float64).T
        if module.bias:
            result = result + load_tensor(module.weights, "linear.bias")
        result = _FUNCTIONS[module.activation](result)
        if module.residual and module.in_features != module.out_features:
            value = value @ load_tensor(module.weights, "residual.weight").astype(np.float64).T
        return result + value if module.residual else result
    if isinstance(module, LayerNormSpec):
        centred = value - value.mean()
        scaled = centred / np.sqrt((centred**2).mean() + 1e-5)
        return np.asarray(
            scaled * load_tensor(module.weights, "norm.weight") + load_tensor(module.weights, "norm.bias")
        )
    return value / max(float(np.linalg.norm(value)), 1e-12)


def _pool(mode: PoolingMode, states: Numbers, kept: Numbers, prompt_tokens: int) -> Numbers:
    """`kept` are the states behind a prompt that is left out; the first and the largest are of all if none is left."""
    if mode is PoolingMode.CLS:
        return np.asarray((kept if len(kept) else states)[0])
    if mode is PoolingMode.LAST_TOKEN:
        return np.asarray(states[-1])
    if mode is PoolingMode.MAX:
        return np.asarray((kept if len(kept) else states).max(axis=0))
    weights = np.ones(len(kept))
    if mode is PoolingMode.WEIGHTED_MEAN:
        weights = np.arange(prompt_tokens + 1 if len(kept) < len(states) else 1, len(states) + 1, dtype=np.float64)
    divisor = max(float(weights.sum()), 1e-9)
    return (weights @ kept) / (math.sqrt(divisor) if mode is PoolingMode.MEAN_SQRT_LEN else divisor)


def _softmax(value: Numbers) -> Numbers:
    powers = np.exp(value - value.max(axis=-1, keepdims=True))
    result: Numbers = powers / powers.sum(axis=-1, keepdims=True)
    return result


_erf = np.vectorize(math.erf, otypes=[np.float64])
_FUNCTIONS: dict[Activation, Callable[[Numbers], Numbers]] = {
    Activation.IDENTITY: lambda value: value,
    Activation.TANH: np.tanh,
    Activation.RELU: lambda value: np.maximum(value, 0.0),
    Activation.SIGMOID: lambda value: 1.0 / (1.0 + np.exp(-value)),
    Activation.SILU: lambda value: value / (1.0 + np.exp(-value)),
    Activation.GELU: lambda value: value * 0.5 * (1.0 + _erf(value / math.sqrt(2.0))),
    Activation.SOFTMAX: _softmax,
}


def _tensor(files: tuple[Path, ...], name: str) -> Numbers:
    """A tensor by the end of its name: wrapping classes put a prefix before it."""
    for file in files:
        for stored in read_header(file):
            if stored == name or stored.endswith(f".{name}"):
                return load_tensor(file, stored).astype(np.float64)
    raise CheckpointError(
        f"The tensor {name!r} of the scoring head is in none of {', '.join(file.name for file in files)}. "
        "Download the repository again, or switch the self-check off with --fidelity 0.",
        param=name,
    )


def _readable(file: Path) -> bool:
    return file.suffix == ".safetensors"
