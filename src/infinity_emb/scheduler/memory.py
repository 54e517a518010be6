"""What to do about batches that do not fit into memory: foresee them, tell their errors, and make smaller ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from infinity_emb.backends.base import Layout
    from infinity_emb.backends.memory import Memory

# A prediction counts up to this many times the largest batch measured; beyond it would be a guess, and a wrong refusal
# is worse than a risk.
TRUSTED_TIMES = 8

# How the libraries word it, in lower case: torch, CUDA, ONNX Runtime, the C++ library, Intel's and AMD's drivers.
_WORDINGS = (
    "out of memory",
    "out_of_memory",
    "can't allocate memory",
    "cannot allocate memory",
    "failed to allocate memory",
    "not enough memory",
    "bad_alloc",
    "out_of_resources",
    "out of device memory",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that smaller batches may work."""
    if isinstance(error, MemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(wording in text for wording in _WORDINGS)


def smaller_layout(layout: Layout, slots: int) -> Layout:
    """The layout after a batch of so many token slots did not fit: half of them, but room for the longest text.

    It never grows again: what else uses the memory is not ours to know, and a batch that fails costs more than two
    smaller ones.
    """
    tokens = max(slots // 2, layout.widths[-1])
    return layout if tokens >= layout.batch_tokens else replace(layout, batch_tokens=tokens)


class MemoryModel:
    """Foresees that a batch larger than any before does not fit.

    Linux promises more memory than there is, so a library on a CPU never hears that there is none: the process is
    ended. What it holds is measured after each batch that is larger than all before; from that follows what a token
    slot takes.

    Args:
        read: What the process holds and may still take; None measures nothing and foresees nothing.
    """

    __slots__ = ("_base_bytes", "_largest_slots", "_read", "_slot_bytes")

    def __init__(self, read: Callable[[], Memory | None] | None) -> None:
        self._read = read
        self._base_bytes: int | None = None
        self._largest_slots = 0
        self._slot_bytes = 0.0

    def check(self, slots: int) -> None:
        """Before a batch of so many token slots is computed.

        Raises:
            MemoryError: It would take more than is left.
        """
        if slots <= self._largest_slots or self._read is None:
            return
        memory = self._read()
        if memory is None:
            self._read = None
        elif self._base_bytes is None:
            self._base_bytes = memory.resident_bytes
        elif slots <= TRUSTED_TIMES * self._largest_slots:
            more = int((slots - self._largest_slots) * self._slot_bytes)
            if more > memory.available_bytes:
                left = memory.available_bytes
                raise MemoryError(f"{slots} token slots would take {more >> 20} MiB more, {left >> 20} MiB are left")

    def observe(self, slots: int) -> None:
        """After a batch of so many slots was computed."""
        if slots <= self._largest_slots or self._read is None or self._base_bytes is None:
            return
        memory = self._read()
        if memory is not None:
            self._slot_bytes = max(0, memory.resident_bytes - self._base_bytes) / slots
            self._largest_slots = slots
