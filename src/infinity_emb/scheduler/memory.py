"""What to do when a batch does not fit into memory: which errors say so, and how large batches may be from then on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infinity_emb.backends.base import Layout

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
