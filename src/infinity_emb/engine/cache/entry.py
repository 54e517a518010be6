"""Hot path. What is kept of one input, and the key it is found under."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from infinity_emb.types import FloatArray, TextInput, TextOptions

DIGEST_BYTES = 16  # 128 bits: a collision among 10^15 texts is less likely than a broken disk


@dataclass(frozen=True, slots=True)
class Entry:
    """The model's outputs for one input.

    Attributes:
        row: Float32 `[width]`: all outputs one after the other.
        tokens: What it cost.
        truncated: Whether it was cut.
    """

    row: FloatArray
    tokens: int
    truncated: bool


class KeyMaker:
    """Makes keys of one engine: a digest of everything that changes the outputs.

    Args:
        identity: What distinguishes this engine's outputs from any other's (model, revision, dtype, pooling …).
        by_name: The name of a prompt changes the outputs, not only its text.
    """

    def __init__(self, identity: str, *, by_name: bool = False) -> None:
        self._identity = identity.encode()
        self._by_name = by_name

    def keys(self, inputs: list[TextInput], prompt: str, options: TextOptions) -> list[bytes]:
        """One key an input; equal if and only if the model would see the same."""
        # names count too: they may choose an adapter, and another one with the same prompt
        named = f"{options.prompt_name or options.input_type}\0" if self._by_name else ""
        how = f"\0{named}{options.truncate}\0{options.truncation_side}\0{options.max_length}\0{len(prompt)}\0{prompt}\0"
        start = hashlib.blake2b(self._identity + how.encode("utf-8", "surrogatepass"), digest_size=DIGEST_BYTES)
        keys = []
        for item in inputs:
            digest = start.copy()
            if isinstance(item, str):
                digest.update(b"t")
                digest.update(item.encode("utf-8", "surrogatepass"))
            else:
                digest.update(b"i")
                digest.update(np.asarray(item, dtype=np.int64).tobytes())
            keys.append(digest.digest())
        return keys
