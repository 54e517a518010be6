"""Values that cross layers: enumerations, what a caller asks, what an engine answers."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from infinity_emb.measures import StageTimes

    FloatArray: TypeAlias = NDArray[np.float32]


class _AnyCase(enum.EnumMeta):
    """Members answer to their lower-case names too (`Device.cpu`), as code written for the original spells them."""

    if not TYPE_CHECKING:  # our own code keeps to the checked spelling

        def __getattr__(cls, name: str) -> _Named:
            if not name.startswith("_") and name.upper() in cls._member_map_:
                return cls._member_map_[name.upper()]
            raise AttributeError(f"{cls.__name__} has no member {name!r}")

        def __getitem__(cls, name: str) -> _Named:
            return super().__getitem__(name.upper())


class _Named(str, enum.Enum, metaclass=_AnyCase):
    """A string enumeration whose members print as their value."""

    __hash__ = str.__hash__  # equal strings have equal hashes, and it is not a function of Python

    def __str__(self) -> str:
        return str(self.value)


class Task(_Named):
    """What a model is asked to do."""

    EMBED = "embed"
    RERANK = "rerank"
    CLASSIFY = "classify"
    SPARSE = "sparse"
    MULTI_VECTOR = "multi_vector"


class Modality(_Named):
    """What an input is."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"


class InferenceEngine(_Named):
    """Which library computes (`--engine`). `optimum` and `debugengine` are the names of the original."""

    AUTO = "auto"
    OPENVINO = "openvino"
    ONNXRUNTIME = "onnxruntime"
    TORCH = "torch"
    CTRANSLATE2 = "ctranslate2"
    TENSORRT = "tensorrt"
    NEURON = "neuron"
    DUMMY = "dummy"
    OPTIMUM = "optimum"
    DEBUGENGINE = "debugengine"


class Device(_Named):
    """Where a backend computes (`--device`)."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    MPS = "mps"
    TENSORRT = "tensorrt"
    XLA = "xla"
    NPU = "npu"


class Dtype(_Named):
    """Number format of the weights and the computation (`--dtype`)."""

    AUTO = "auto"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"
    FP8 = "fp8"


class EmbeddingDtype(_Named):
    """Number format of returned vectors (`--embedding-dtype`, `embedding_dtype`)."""

    FLOAT32 = "float32"
    INT8 = "int8"
    UINT8 = "uint8"
    BINARY = "binary"
    UBINARY = "ubinary"


class PoolingMethod(_Named):
    """How token states become one vector (`--pooling-method`); `auto` is what the repository says."""

    AUTO = "auto"
    MEAN = "mean"
    CLS = "cls"


class MediaUrls(_Named):
    """Which addresses images and sounds may be fetched from (`--media-urls`); `data:` URIs are always read."""

    PUBLIC = "public"
    ANY = "any"
    NONE = "none"


class EmbeddingEncodingFormat(_Named):
    """How vectors are written in an answer (`encoding_format`)."""

    FLOAT = "float"
    BASE64 = "base64"


class Priority(enum.IntEnum):
    """Class of a request in the waiting line; lower goes first."""

    INTERACTIVE = 0
    BULK = 1


TextInput: TypeAlias = "str | list[int]"
"""A text, or token ids of the served model's own vocabulary (fed as they are, special tokens included)."""

Side: TypeAlias = Literal["left", "right"]
InputType: TypeAlias = Literal["query", "document"]


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How texts are read.

    Attributes:
        prompt: Text put before each input; wins over `prompt_name` and the default prompt, which `""` switches off.
        prompt_name: Key into the model's own prompts.
        input_type: `query` or `document`: picks the model's prompt of that kind if it has one.
        truncate: Cut inputs that are too long (True), or refuse them (False).
        truncation_side: Which end is cut off; None is the tokenizer's own.
        max_length: Cut at this many tokens (special tokens included) if it is below the model's limit.
    """

    prompt: str | None = None
    prompt_name: str | None = None
    input_type: InputType | None = None
    truncate: bool = True
    truncation_side: Side | None = None
    max_length: int | None = None


DEFAULT_TEXT_OPTIONS = TextOptions()


@dataclass(frozen=True, slots=True)
class EmbedOptions:
    """How vectors are made.

    Attributes:
        text: How the inputs are read.
        normalize: Unit length yes or no; None is what the repository says.
        dimensions: Keep the first so many numbers (re-normalised if the vector was unit length); None or 0 keeps all.
        average_long: A text that is too long is not cut but read in pieces, whose vectors are averaged.
    """

    text: TextOptions = DEFAULT_TEXT_OPTIONS
    normalize: bool | None = None
    dimensions: int | None = None
    average_long: bool = False


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """How scores are made (rerank and classify).

    Attributes:
        text: How the inputs are read.
        raw_scores: Return the logits instead of applying the activation.
    """

    text: TextOptions = DEFAULT_TEXT_OPTIONS
    raw_scores: bool = False


@dataclass(slots=True)
class Call:
    """Circumstances of one request, for the waiting line.

    Attributes:
        deadline_s: `time.monotonic()` value after which nobody waits for the answer; None is no limit.
        priority: Class in the waiting line; None lets the engine decide by size.
        request_id: For logs and error messages.
        times: Where its time goes, filled by the engine; None if nobody asks.
        owner: Whose request it is: owners share the machine fairly. None is everyone without a key.
    """

    deadline_s: float | None = None
    priority: Priority | None = None
    request_id: str | None = None
    times: StageTimes | None = None
    owner: bytes | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What a request cost.

    Attributes:
        prompt_tokens: Tokens the model saw: special tokens included, padding not, after truncation.
        truncated: Positions of the items that were cut.
        averaged: Positions of the items that were read in pieces.
        media_tokens: Those of `prompt_tokens` that images and sounds took.
        image_pixels: Pixels that the model saw, after resizing and cropping.
    """

    prompt_tokens: int
    truncated: tuple[int, ...] = ()
    averaged: tuple[int, ...] = ()
    media_tokens: int = 0
    image_pixels: int = 0


@dataclass(slots=True)
class EmbedResult:
    """Vectors of one request, in input order.

    Attributes:
        vectors: Float32 array `[items, dim]`.
        usage: Tokens and truncations.
    """

    vectors: FloatArray
    usage: Usage


@dataclass(slots=True)
class ScoreResult:
    """Scores of one request, in input order.

    Attributes:
        scores: Float32 array: `[documents]` for rerank, `[items, labels]` for classify.
        usage: Tokens and truncations.
        labels: Names of the columns for classify; empty for rerank.
    """

    scores: FloatArray
    usage: Usage
    labels: tuple[str, ...] = ()


@dataclass(slots=True)
class SparseResult:
    """Weights of words, in input order.

    Attributes:
        indices: For each text the numbers of the words that weigh something, ascending.
        weights: Float32, of those words.
        usage: Tokens and truncations.
    """

    indices: list[NDArray[np.int64]]
    weights: list[FloatArray]
    usage: Usage


@dataclass(slots=True)
class MultiVectorResult:
    """A vector a token, in input order.

    Attributes:
        vectors: For each text a float32 array `[n, dim]`; n differs.
        usage: Tokens and truncations.
    """

    vectors: list[FloatArray]
    usage: Usage


@dataclass(slots=True)
class ChunkResult:
    """Vectors of the chunks of documents, in input order.

    Attributes:
        vectors: Float32 array `[chunks of all documents, dim]`.
        spans: For each document its chunks' first token in what the model read, and the one behind the last.
        usage: Tokens of the documents.
    """

    vectors: FloatArray
    spans: list[list[tuple[int, int]]]
    usage: Usage


class RerankReturnType(NamedTuple):
    """One row of the Python `rerank` result."""

    relevance_score: float
    document: str
    index: int  # type: ignore[assignment]  # the name users know; it hides tuple.index


class ClassifyReturnElement(dict[str, "str | float"]):
    """One row of the Python `classify` result: keys `label` and `score`."""


class TokenInfo(NamedTuple):
    """One token of a text, for people and `/tokenize`.

    Attributes:
        id: Number in the vocabulary.
        text: The part of the text it stands for; the token's own name if it is special.
        special: True if the tokenizer added it.
        start: Offset of its first byte in the UTF-8 text (prompt included), None if it is special.
        stop: Offset after its last byte, None if it is special.
    """

    id: int
    text: str
    special: bool
    start: int | None
    stop: int | None


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a running engine says about itself (for `/models`, `/info`, the start-up block).

    Attributes:
        served_name: Name that requests use.
        model_id: Repository id or folder that was asked for.
        source: Where the files came from, in words.
        revision: Resolved revision (commit) or None for a local folder.
        tasks: What it can do.
        modalities: What it can read.
        backend: Name of the library that computes.
        device: Where.
        dtype: Number format of the computation.
        dim: Length of a vector (0 for scorers).
        max_length: Longest input in tokens, special tokens included.
        pooling: Pooling modes, in words.
        normalized: True if vectors are unit length.
        labels: Label names of a classifier or reranker.
        prompts: Prompt names and texts of the repository.
        default_prompt_name: The prompt used when none is asked for.
        batch_size: Most items in one batch.
        extra: Further facts, shown as they are (threads, modules …).
    """

    served_name: str
    model_id: str
    source: str
    revision: str | None
    tasks: frozenset[Task]
    modalities: frozenset[Modality]
    backend: str
    device: str
    dtype: str
    dim: int
    max_length: int
    pooling: str
    normalized: bool
    labels: tuple[str, ...]
    prompts: dict[str, str]
    default_prompt_name: str | None
    batch_size: int
    extra: dict[str, str | int | float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OverloadStatus:
    """How full an engine's waiting line is.

    Attributes:
        queue_fraction: Share of the allowed items or tokens that wait, whichever is larger.
        queue_absolute: Items that wait.
        results_absolute: Items being computed.
        queue_tokens: Tokens that wait.
        oldest_wait_s: How long the oldest request has waited.
        tokens_per_s: Measured speed; 0.0 until something was computed.
    """

    queue_fraction: float
    queue_absolute: int
    results_absolute: int
    queue_tokens: int = 0
    oldest_wait_s: float = 0.0
    tokens_per_s: float = 0.0
