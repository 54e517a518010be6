"""Hot path. Looks token ids up in a table of word vectors: a model of whole words has no module of transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from infinity_emb.backends.torch_weights import read_weight

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

    Tensors: TypeAlias = "dict[str, Any]"

TABLE = "emb_layer.weight"


class TableForward:
    """Rows of the table, or the ids themselves where there is none (BoW); as `Forward`."""

    def __init__(self, torch: Any, spec: ModelSpec, device: Any) -> None:
        self.packed = not spec.recurs
        self.inputs: tuple[str, ...] = ("input_ids",)
        self._table = read_weight(torch, spec.weights[0], TABLE, device) if spec.weights else None

    def __call__(self, arrays: Tensors) -> Any:
        """Token states `[slots, width]`."""
        ids = arrays["input_ids"].flatten()
        return ids if self._table is None else self._table[ids]
