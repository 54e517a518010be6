"""Hot path. Calls a transformers module with padded rows, or with packed rows where that is exact."""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from infinity_emb.backends.torch_rotary import RotaryMemory
from infinity_emb.models.spec.layer_mean import LayerMeanSpec
from infinity_emb.models.spec.rotary import depends_on_length
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

    Tensors: TypeAlias = "dict[str, Any]"

_log = logging.getLogger("infinity_emb")

# Families whose only look at other tokens is attention under the given mask, and that take positions as given.
_PACKED = frozenset({"albert", "bert", "camembert", "distilbert", "electra", "roberta", "xlm-roberta"})
# Of these, the ones that count positions from behind the padding index and do not count padding tokens.
_OFFSET_POSITIONS = frozenset({"camembert", "roberta", "xlm-roberta"})
# Scoring heads that read the first token alone: `classifier` of its state, or of the pooler's output.
_FIRST_TOKEN_HEADS = frozenset({"camembert", "electra", "roberta", "xlm-roberta"})
_POOLER_HEADS = frozenset({"bert"})
_MASKS_AS_GIVEN = 5  # first major version of transformers whose models take a four-dimensional mask as it is


class Forward(Protocol):
    """A way to call a module.

    Attributes:
        inputs: Names of the arrays it needs, see `backends.base`.
        packed: Whether rows may hold several texts.
    """

    inputs: tuple[str, ...]
    packed: bool

    def __call__(self, arrays: Tensors) -> Any:
        """Token states `[slots, hidden]` of an embedder, or logits `[segments, labels]` of a scorer.

        Where the states of all layers are averaged: `[layers + 1, slots, hidden]`.
        """


def packs(spec: ModelSpec, version: str) -> bool:
    """Whether rows may hold several texts with this checkpoint and this version of transformers."""
    if spec.words is not None or spec.recurs:
        return not spec.recurs
    if int(version.partition(".")[0]) < _MASKS_AS_GIVEN or spec.model_type not in _PACKED:
        return False
    if not spec.classifies:
        return spec.task is Task.EMBED
    return spec.model_type in _FIRST_TOKEN_HEADS | _POOLER_HEADS


class PaddedForward:
    """One text a row; transformers makes mask and positions itself, as for any batch padded on the right."""

    packed = False

    def __init__(self, torch: Any, spec: ModelSpec, module: Any, *, compiled: bool = False) -> None:
        self._embeds = not spec.classifies and not spec.weighs_words
        self._layered = any(isinstance(module, LayerMeanSpec) for module in spec.modules)
        self._torch = torch
        expansion = spec.late.expansion if spec.late else None
        self._seen = "segment_ids" if expansion is None or expansion.attend else "key_segment_ids"
        self._types = _takes_types(module)
        self._pad_id = spec.config.get("pad_token_id")
        self._memory = RotaryMemory(module) if depends_on_length(spec) else None
        self._module = CompiledModule(torch, module) if compiled else module
        names = dict.fromkeys(("input_ids", "segment_ids", self._seen))
        self.inputs = (*names, *(("token_type_ids",) if self._types else ()))

    def __call__(self, arrays: Tensors) -> Any:
        if self._memory is not None:
            self._memory.forget()
        real = arrays["segment_ids"] > 0
        ids = arrays["input_ids"]
        if isinstance(self._pad_id, int):  # decoders find a text's last token by what is not padding
            ids = ids.masked_fill(~real, self._pad_id)
        inputs = {"input_ids": ids, "attention_mask": (arrays[self._seen] > 0).long()}
        if self._types:
            inputs["token_type_ids"] = arrays["token_type_ids"]
        output = self._module(**inputs, return_dict=True, output_hidden_states=self._layered)
        if self._layered:
            return self._torch.stack(output.hidden_states).flatten(1, 2)
        return output.last_hidden_state.flatten(0, 1) if self._embeds else output.logits


class PackedForward:
    """Several texts a row, kept apart by a block-diagonal mask; their positions start again for each."""

    packed = True

    def __init__(self, torch: Any, spec: ModelSpec, module: Any, *, compiled: bool = False) -> None:
        self._torch = torch
        base = module.base_model if spec.classifies else module
        self._base = CompiledModule(torch, base) if compiled else base
        self._dtype = module.dtype
        self._layered = any(isinstance(module, LayerMeanSpec) for module in spec.modules)
        self._types = _takes_types(base)
        self._padding_id = int(module.config.pad_token_id or 0) if spec.model_type in _OFFSET_POSITIONS else None
        self._classifier = module.classifier if spec.classifies else None
        self._pooler = base.pooler if spec.model_type in _POOLER_HEADS else None
        self.inputs = (
            "input_ids",
            "segment_ids",
            "position_ids",
            "first_index",
            *(("token_type_ids",) if self._types else ()),
        )

    def __call__(self, arrays: Tensors) -> Any:
        inputs = {
            "input_ids": arrays["input_ids"],
            "attention_mask": self._mask(arrays["segment_ids"]),
            "position_ids": self._positions(arrays),
        }
        if self._types:
            inputs["token_type_ids"] = arrays["token_type_ids"]
        output = self._base(**inputs, return_dict=True, output_hidden_states=self._layered)
        if self._layered:
            return self._torch.stack(output.hidden_states).flatten(1, 2)
        states = output.last_hidden_state.flatten(0, 1)
        if self._classifier is None:
            return states
        first = states[arrays["first_index"]][:, None]
        return self._classifier(first if self._pooler is None else self._pooler(first))

    def _mask(self, segments: Any) -> Any:
        """Additive `[rows, 1, width, width]`; padding slots see each other, so that no row of it is empty."""
        apart = segments[:, None, :, None] != segments[:, None, None, :]
        lowest = self._torch.finfo(self._dtype).min
        return self._torch.zeros(apart.shape, dtype=self._dtype, device=apart.device).masked_fill_(apart, lowest)

    def _positions(self, arrays: Tensors) -> Any:
        positions = arrays["position_ids"]
        padding = self._padding_id
        if padding is None:
            return positions
        # A padding token written in a text is not counted, as in transformers' create_position_ids_from_input_ids.
        counted = (arrays["input_ids"] != padding).long()
        running = counted.cumsum(dim=1) - counted
        starts = self._torch.arange(positions.shape[1], device=positions.device) - positions
        before = running - running.gather(1, starts)
        return counted * (before + 1) + padding


class CompiledModule:
    """`torch.compile`, given up with a warning where it cannot work."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._module = module
        self._compiled = None
        try:
            self._compiled = torch.compile(module, dynamic=True)
        except (RuntimeError, ImportError, OSError) as error:
            _warn_uncompiled(error)

    def __call__(self, **inputs: Any) -> Any:
        if self._compiled is not None:
            try:
                return self._compiled(**inputs)
            except (RuntimeError, ImportError, OSError) as error:  # compilation happens at the first call of a shape
                self._compiled = None
                _warn_uncompiled(error)
        return self._module(**inputs)


def _warn_uncompiled(error: Exception) -> None:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    _log.warning("torch.compile does not work here (%s); the model runs without it, with the same results", reason)


def _takes_types(module: Any) -> bool:
    return "token_type_ids" in inspect.signature(module.forward).parameters
