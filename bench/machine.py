"""What the machine can do: the rate of the model's own linear layers, and how near the packed forward pass comes."""

from __future__ import annotations

import itertools
import json
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TOKENS = (512, 1024, 2048, 4096)
_PAIRS = 4
_HINTS = {"float32": "f32", "bfloat16": "bf16"}


class LinearLayers:
    """A chain of the model's two large layers, hidden → intermediate → hidden, without anything between.

    Args:
        model: Folder of the checkpoint.
        dtype: `float32` or `bfloat16`.
    """

    def __init__(self, model: str, dtype: str) -> None:
        import openvino
        from openvino import opset13

        config = json.loads((Path(model) / "config.json").read_text())
        self._hidden, inner = config["hidden_size"], config["intermediate_size"]
        start = opset13.parameter([-1, self._hidden], np.float32)
        chance = np.random.default_rng(0)
        node: Any = start
        for rows, columns in [(inner, self._hidden), (self._hidden, inner)] * _PAIRS:
            weight = (chance.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
            node = opset13.matmul(node, opset13.constant(weight), False, True)
        settings = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": _HINTS[dtype]}
        compiled = openvino.Core().compile_model(openvino.Model([node], [start]), "CPU", settings)
        self._request = compiled.create_infer_request()
        self._flop_per_token = 2 * 2 * self._hidden * inner * _PAIRS

    def gflop_per_s(self, duration_s: float) -> float:
        """Rate at the number of tokens that suits the machine best."""
        return max(self._rate(tokens, duration_s / len(_TOKENS)) for tokens in _TOKENS)

    def _rate(self, tokens: int, duration_s: float) -> float:
        inputs = [np.random.default_rng(1).standard_normal((tokens, self._hidden)).astype(np.float32)]
        per_s = _repeat(lambda: self._request.infer(inputs, share_inputs=True, share_outputs=True), duration_s)
        return per_s * tokens * self._flop_per_token / 1e9


class PackedForward:
    """Our backend on batches as the batcher makes them, with nothing around it.

    Args:
        model: Folder of the checkpoint.
        dtype: As `--dtype`.
        texts: What to compute.
    """

    def __init__(self, model: str, dtype: str, texts: Sequence[str]) -> None:
        from infinity_emb.config.engine_args import EngineArgs
        from infinity_emb.engine.loader import load
        from infinity_emb.scheduler.batcher import Batcher
        from infinity_emb.scheduler.collate import Collator
        from infinity_emb.scheduler.request import Request
        from infinity_emb.types import Priority

        args = EngineArgs(model_name_or_path=model, dtype=dtype)
        loaded = load(args)
        self._backend = loaded.backends[0]
        batcher = Batcher(self._backend.layout, args.batch_size)
        features = loaded.preprocessor.texts(texts)
        batcher.add(Request(features, Future(), None, Priority.BULK))
        collate = Collator(self._backend.inputs, self._backend.layout)
        self._batches: list[tuple[Any, int]] = []
        self.tokens = self.slots = 0
        while (batch := batcher.next_batch(0.0)) is not None:
            self._batches.append((collate(batch), batch.tokens))
            self.tokens += batch.tokens
            self.slots += batch.rows * batch.width
        for arrays, _ in self._batches:  # each shape once, which compiles for it
            self._backend.start(arrays).result()
        self._flop_per_token = linear_flop_per_token(model)

    def tokens_per_s(self, duration_s: float) -> float:
        """Real tokens, padding not counted."""
        done = 0
        started_s = time.perf_counter()
        for arrays, tokens in itertools.cycle(self._batches):
            self._backend.start(arrays).result()
            done += tokens
            took_s = time.perf_counter() - started_s
            if took_s >= duration_s:
                return done / took_s
        raise AssertionError("a cycle has no end")

    def gflop_per_s(self, duration_s: float) -> float:
        """The linear layers' share of the work only, real tokens only: attention and padding earn nothing."""
        return self.tokens_per_s(duration_s) * self._flop_per_token / 1e9

    def close(self) -> None:
        """Give the memory back."""
        self._backend.close()


def linear_flop_per_token(model: str) -> int:
    """Floating point operations of a BERT's linear layers for one token."""
    config = json.loads((Path(model) / "config.json").read_text())
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    return int(2 * config["num_hidden_layers"] * (4 * hidden * hidden + 2 * hidden * inner))


def has_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 natively."""
    import openvino

    return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


def _repeat(call: Callable[[], object], duration_s: float) -> float:
    """Calls per second, after one that is not counted."""
    call()
    count = 0
    started_s = time.perf_counter()
    while True:
        call()
        count += 1
        took_s = time.perf_counter() - started_s
        if took_s >= duration_s:
            return count / took_s
