"""Row widths and batch sizes that suit a device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infinity_emb.backends.base import Layout
from infinity_emb.types import Modality

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec

CPU_BATCH_TOKENS = 512  # throughput of a CPU is flat from here on; more only adds latency
GPU_BATCH_TOKENS = 16384
SMALL_STEPS = (24, 48)


def layout_of(spec: ModelSpec, batch_tokens: int, *, packed: bool) -> Layout:
    """The layout for what a checkpoint reads; texts share rows if the model can keep them apart."""
    if spec.reads is not Modality.TEXT:
        return media_layout(spec.media_spec(spec.reads).positions, batch_tokens)
    return (packed_layout if packed else padded_layout)(spec.max_length, batch_tokens)


def media_layout(positions: int, batch_tokens: int) -> Layout:
    """One image or sound a row, all of the same size; no row is ever added, since each costs a whole item."""
    return Layout(widths=(positions,), batch_tokens=batch_tokens, segments_per_row=1, segment_steps=())


def packed_layout(max_length: int, batch_tokens: int = CPU_BATCH_TOKENS) -> Layout:
    """Several texts a row; widths double from 16 up to the longest text, with steps between the smallest ones.

    The steps serve single short queries, which would otherwise pay for up to half a row of nothing.
    """
    doubling = _widths(16, max_length)
    between = [width for width in SMALL_STEPS if width < max_length]
    return Layout(widths=tuple(sorted({*doubling, *between})), batch_tokens=batch_tokens)


def padded_layout(max_length: int, batch_tokens: int = CPU_BATCH_TOKENS, step: int = 16) -> Layout:
    """One text a row; widths grow in small steps since every slot beyond the longest text is waste."""
    widths = (*range(step, max_length, step), max_length)
    return Layout(widths=widths, batch_tokens=batch_tokens, segments_per_row=1)


def alone_layout(max_length: int, batch_tokens: int = CPU_BATCH_TOKENS) -> Layout:
    """One text a batch without any padding, for a model that looks at the length of the whole batch."""
    widths = tuple(range(1, max_length + 1))
    return Layout(widths=widths, batch_tokens=batch_tokens, segments_per_row=1, segment_steps=(1,), max_rows=1)


def _widths(smallest: int, largest: int) -> tuple[int, ...]:
    widths = []
    width = smallest
    while width < largest:
        widths.append(width)
        width *= 2
    return (*widths, largest)
