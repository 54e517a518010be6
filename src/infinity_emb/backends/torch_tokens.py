"""Hot path. Modules of an embedder that act on token states, in float32; the same as the files of `models.graph`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.backends.torch_weights import read_weight
from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.bag import BagSpec
from infinity_emb.models.spec.convolution import ConvolutionSpec
from infinity_emb.models.spec.layer_mean import LayerMeanSpec
from infinity_emb.models.spec.recurrent import RecurrentSpec
from infinity_emb.models.spec.token_weights import TokenWeightsSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.models.spec.model import ModelSpec

    Tensors: TypeAlias = "dict[str, Any]"


class LayerMean:
    """The weighted mean of the states of several layers."""

    def __init__(self, torch: Any, module: LayerMeanSpec, device: Any) -> None:
        self._module = module
        self._factors = read_weight(torch, module.weights, "layer_weights", device)[:, None, None]

    def __call__(self, states: Any, _: Tensors) -> Any:
        """`[layers + 1, slots, hidden]` → `[slots, hidden]`."""
        module = self._module
        if len(states) != module.start + module.count:
            raise CheckpointError(
                f"WeightedLayerPooling: num_hidden_layers says {module.start + module.count - 1}, but the transformer "
                f"has {len(states) - 1} layers. Correct its config.json, or download the repository again.",
                param="num_hidden_layers",
            )
        return (self._factors * states[module.start :]).sum(dim=0) / self._factors.sum()


class Weigher:
    """Each token's state times the weight of its word."""

    def __init__(self, torch: Any, module: TokenWeightsSpec, device: Any) -> None:
        self._table = torch.tensor(module.weights, dtype=torch.float32, device=device)[:, None]

    def of(self, arrays: Tensors) -> Any:
        """Weight of each slot, `[slots, 1]`."""
        return self._table[arrays["input_ids"].flatten()]

    def __call__(self, hidden: Any, arrays: Tensors) -> Any:
        """`[slots, hidden]`."""
        return hidden * self.of(arrays)


class Convolution:
    """Convolutions side by side; neither a neighbour in the row nor padding reaches into a text."""

    def __init__(self, torch: Any, module: ConvolutionSpec, device: Any) -> None:
        self._torch, self._kernels = torch, module.kernels
        numbers = range(len(module.kernels))
        self._weights = [read_weight(torch, module.weights, f"convs.{number}.weight", device) for number in numbers]
        self._biases = [read_weight(torch, module.weights, f"convs.{number}.bias", device) for number in numbers]

    def __call__(self, hidden: Any, arrays: Tensors) -> Any:
        """`[slots, in]` → `[slots, out]`."""
        segments = arrays["segment_ids"].flatten()
        reach = max(self._kernels) // 2
        shifted = {offset: self._shifted(hidden, segments, offset) for offset in range(-reach, reach + 1)}
        parts = []
        for kernel, weight, bias in zip(self._kernels, self._weights, self._biases, strict=True):
            seen = [shifted[offset] for offset in range(-(kernel // 2), kernel // 2 + 1)]
            parts.append(sum(state @ weight[:, :, place].T for place, state in enumerate(seen)) + bias)
        return self._torch.cat(parts, dim=-1)

    def _shifted(self, hidden: Any, segments: Any, offset: int) -> Any:
        """The state `offset` tokens further on in the same text, zeros where there is none."""
        if offset == 0:
            return hidden
        wanted = self._torch.arange(len(hidden), device=hidden.device) + offset
        index = wanted.clamp(0, len(hidden) - 1)
        return hidden[index] * ((segments[index] == segments) & (index == wanted))[:, None]


class Recurrent:
    """An LSTM over each text, one text a row."""

    def __init__(self, torch: Any, module: RecurrentSpec, device: Any) -> None:
        self._torch = torch
        self._network = torch.nn.LSTM(
            module.in_features,
            module.hidden,
            num_layers=module.layers,
            bidirectional=module.both_ways,
            batch_first=True,
        )
        layers = range(module.layers)
        names = [name + end for layer in layers for name in module.shapes(layer) for end in module.directions]
        tensors = {name: read_weight(torch, module.weights, name, "cpu") for name in names}
        self._network.load_state_dict({name.removeprefix("encoder."): tensor for name, tensor in tensors.items()})
        self._network = self._network.to(device).eval()

    def __call__(self, hidden: Any, arrays: Tensors) -> Any:
        """`[slots, in]` → `[slots, out]`."""
        rnn = self._torch.nn.utils.rnn
        real = arrays["segment_ids"] > 0
        lengths = real.sum(dim=1).clamp(min=1).cpu()
        rows = hidden.reshape(*real.shape, -1)
        read, _ = self._network(rnn.pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=False))
        return rnn.pad_packed_sequence(read, batch_first=True, total_length=real.shape[1])[0].flatten(0, 1)


class Bag:
    """How often each word is in a text, times its weight."""

    def __init__(self, torch: Any, module: BagSpec, device: Any) -> None:
        self._torch, self._counted = torch, module.counted
        self._weights = torch.tensor(module.weights, dtype=torch.float32, device=device)

    def __call__(self, ids: Any, arrays: Tensors) -> Any:
        """Token ids `[slots]` → `[segments, words]`."""
        factors = arrays["pool_weights"]
        counts = self._torch.zeros(len(factors) + 1, len(self._weights), device=factors.device)
        places = arrays["segment_ids"].flatten(), ids.long()
        counts = counts.index_put(places, factors.sum(dim=0)[: len(ids)], accumulate=True)[
            1:
        ]  # the first row is that of padding
        return (counts if self._counted else counts.clamp(max=1.0)) * self._weights


TOKEN_STEPS: dict[type, Callable[[Any, Any, Any], Callable[[Any, Tensors], Any]]] = {
    BagSpec: Bag,
    ConvolutionSpec: Convolution,
    LayerMeanSpec: LayerMean,
    RecurrentSpec: Recurrent,
    TokenWeightsSpec: Weigher,
}
_INPUTS: dict[type, tuple[str, ...]] = {
    BagSpec: ("segment_ids", "pool_weights"),
    ConvolutionSpec: ("segment_ids",),
    RecurrentSpec: ("segment_ids",),
    TokenWeightsSpec: ("input_ids",),
}


def inputs_of(spec: ModelSpec) -> set[str]:
    """Arrays that the steps of a checkpoint need."""
    return {name for module in spec.modules for name in _INPUTS.get(type(module), ())}
