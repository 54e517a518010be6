"""Low-rank adapters for several tasks, chosen text by text, so that texts of different tasks may share a batch.

LoRA (Hu et al. 2022) as `jinaai/xlm-roberta-flash-implementation` stores it: each linear layer and each table is
parametrised, `weight + alpha / rank · B @ A` with one A and one B a task. The products are never added to the weights:
the narrow results of all tasks are computed side by side and those of other tasks are multiplied by zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

from infinity_emb.models.graph.architecture import require_config

if TYPE_CHECKING:
    from infinity_emb.models.graph.architecture import Config
    from infinity_emb.models.graph.builder import GraphBuilder

_STORED = "parametrizations.weight"


class Adapters:
    """Linear layers and tables of a checkpoint, with adapters where config.json names tasks, else without.

    Args:
        builder: Of the graph.
        config: With `lora_adaptations`, `lora_rank` and `lora_alpha`.
    """

    def __init__(self, builder: GraphBuilder, config: Config) -> None:
        self._builder = builder
        self._count = len(config.get("lora_adaptations") or ())
        if not self._count:
            return
        self._rank = int(require_config(config, "lora_rank"))
        numbers = np.repeat(np.arange(1, self._count + 1), self._rank)
        chosen = builder.node("Unsqueeze", [builder.flatten(builder.input("adapter_ids")), builder.ints(1)])
        same = builder.node("Equal", [chosen, builder.constant(numbers, np.int64)])
        scale = builder.number(float(require_config(config, "lora_alpha")) / self._rank)
        self._mask = builder.node("Mul", [builder.node("Cast", [same], to=TensorProto.FLOAT), scale])

    def linear(self, value: str, name: str, shape: tuple[int, int]) -> str:
        """As `GraphBuilder.linear`: `[slots, in]` → `[slots, out]`."""
        builder = self._builder
        if not self._count:
            return builder.linear(value, name, shape)
        weight, bias = builder.weight(f"{name}.{_STORED}.original", shape), builder.weight(f"{name}.bias", shape[:1])
        plain = builder.node("Gemm", [value, weight, bias], transB=1)
        down = builder.weight(f"{name}.{_STORED}.0.lora_A", (self._count, self._rank, shape[1]))
        down = builder.node("Reshape", [down, builder.ints(-1, shape[1])])
        narrow = builder.node("Mul", [builder.node("Gemm", [value, down], transB=1), self._mask])
        up = builder.weight(f"{name}.{_STORED}.0.lora_B", (self._count, shape[0], self._rank))
        return builder.add(plain, builder.node("MatMul", [narrow, self._flat(up, shape[0])]))

    def lookup(self, name: str, index: str | None, width: int) -> str:
        """Rows `[slots, width]` of a table; None is a table of one row, for every token."""
        builder = self._builder
        if not self._count:
            table = f"{name}.weight"
            return builder.weight(table) if index is None else builder.lookup(table, index)
        table = f"{name}.{_STORED}.original"
        plain = builder.weight(table) if index is None else builder.lookup(table, index)
        down = builder.weight(f"{name}.{_STORED}.0.lora_A")  # [tasks, rows, rank]: tables have A and B the other way
        if index is not None:
            down = builder.node("Gather", [down, index], axis=1)
        by_slot = builder.node("Transpose", [down], perm=[1, 0, 2])
        narrow = builder.node("Reshape", [by_slot, builder.ints(-1, self._count * self._rank)])
        up = builder.weight(f"{name}.{_STORED}.0.lora_B", (self._count, self._rank, width))
        up = builder.node("Reshape", [up, builder.ints(-1, width)])
        return builder.add(plain, builder.node("MatMul", [builder.node("Mul", [narrow, self._mask]), up]))

    def _flat(self, up: str, width: int) -> str:
        """`[tasks, width, rank]` → `[tasks · rank, width]`."""
        builder = self._builder
        turned = builder.node("Transpose", [up], perm=[0, 2, 1])
        return builder.node("Reshape", [turned, builder.ints(-1, width)])
