"""The contract of a backend: named arrays in, named arrays out.

Arrays a backend may ask for (`Backend.inputs`), for `rows` rows of `width` token slots that hold `segments` texts.
A text occupies consecutive slots of one row; a row holds one or several texts, padding slots come last.

==================  =========  ====================  =======================================================
name                dtype      shape                 meaning
==================  =========  ====================  =======================================================
input_ids           int64      [rows, width]         token ids; 0 in padding slots
segment_ids         int64      [rows, width]         a number above 0 for each text; 0 in padding slots
position_ids        int64      [rows, width]         0, 1, … within each text; 0 in padding slots
key_segment_ids     int64      [rows, width]         segment_ids, but -1 where a token is seen by none
token_type_ids      int64      [rows, width]         as the tokenizer says; 0 in padding slots
adapter_ids         int64      [rows, width]         number of the text's adapter from 1 on, 0 for none
pool_weights        float32    [segments, columns]   1 where a token counts for the mean (slots = rows·width)
position_weights    float32    [segments, columns]   1, 2, … along each text, else 0 (weighted mean)
first_index         int64      [segments]            slot of the first token of each text (*)
last_index          int64      [segments]            slot of the last token of each text
token_index         int64      [segments, longest]   slots of each text's tokens; the last one repeated (*)
==================  =========  ====================  =======================================================

(*) Behind a prompt that pooling leaves out (`Features.prompt_tokens`), unless nothing would be left.

A model that reads images or sounds (`ModelSpec.reads`) asks for the arrays of its `MediaSpec` instead, float32
`[segments, …]`, one item a row.

Arrays it gives back: `embedding` float32 `[segments, dim]`, with `norm` `[segments, 1]` (the length each vector had
before it was divided by it) where the model ends in Normalize; or `logits` float32 `[segments, labels]`.
Other kinds of models give `tokens` float32 `[slots, dim]`, a vector a slot, or `sparse` float32 `[rows, vocabulary]`
from rows of one text each, or `codes` float32 `[segments, codes]`, sparse too.
`segments` may be padded up by the collator (`Layout.segment_steps`); the caller drops those rows. `columns` is `slots`
padded up (`pooled_columns`): a library that keeps something for each shape it has met (OpenVINO 0.6 MB for this product
alone) meets few of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import Device, Dtype

Arrays: TypeAlias = "dict[str, NDArray[Any]]"


class Pending(Protocol):
    """A forward pass on its way."""

    def result(self) -> Arrays:
        """Wait for the outputs; raises whatever the library raised."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a backend wants its batches laid out.

    Attributes:
        widths: Allowed row widths in tokens, ascending; the last one holds the longest text.
        batch_tokens: Token slots at which throughput is flat; a batch aims at this and not beyond,
            unless one row alone is longer.
        segments_per_row: 1 gives classic padding, one text a row; None is no limit (packed).
        segment_steps: Segment counts are padded up to one of these, to keep the number of shapes small.
        max_rows: Most rows in a batch; None follows from `batch_tokens`.
    """

    widths: tuple[int, ...]
    batch_tokens: int
    segments_per_row: int | None = None
    segment_steps: tuple[int, ...] = (1, 8, 32, 128, 512)
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class BackendOptions:
    """What a user may say about how a backend computes.

    Attributes:
        device: Where.
        device_id: Ordinal of the device, or None.
        dtype: Number format.
        threads: CPU threads, None for one a physical core.
        compile: Ask for the library's slower, deeper compilation.
        cache_folder: Where compiled artefacts may be kept, None to keep none.
        extra: Settings that one backend alone understands.
    """

    device: Device
    dtype: Dtype
    device_id: int | None = None
    threads: int | None = None
    compile: bool = False
    cache_folder: Path | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BackendReport:
    """What a loaded backend computes with, for the start-up block and `/models`.

    Attributes:
        device: In words, such as "cpu" or "cuda:0".
        dtype: Number format of the computation.
        threads: CPU threads, 0 where that means nothing.
        version: Name and version of the library.
        graph: Where the graph came from: "built from config", the repository's own file, "exported", or "module".
    """

    device: str
    dtype: Dtype
    threads: int
    version: str
    graph: str


class Backend(ABC):
    """One model on one device. Used by one thread at a time."""

    name: ClassVar[str]

    @abstractmethod
    def __init__(self, spec: ModelSpec, options: BackendOptions) -> None:
        """Load; raises `LoadError` or `MissingExtraError`."""

    @classmethod
    def fast_dtypes(cls, options: BackendOptions) -> tuple[Dtype, ...]:  # noqa: ARG003 - for those that have some
        """Number formats that this machine computes faster than float32, fastest first; `auto` tries them."""
        return ()

    @property
    @abstractmethod
    def inputs(self) -> tuple[str, ...]:
        """Names of the arrays that `start` needs."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """How batches have to be laid out."""

    @property
    @abstractmethod
    def report(self) -> BackendReport:
        """What it computes with."""

    @abstractmethod
    def start(self, arrays: Arrays) -> Pending:
        """Begin one forward pass; the arrays stay untouched until its result is taken. One at a time."""

    @abstractmethod
    def close(self) -> None:
        """Give device and memory back; safe to call twice."""
