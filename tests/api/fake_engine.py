"""An engine double: deterministic vectors and scores from hashes, and faults on demand."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.engine.media_face import check_modality
from infinity_emb.errors import CapabilityError, DimensionsError, InputTooLargeError, InvalidInputError
from infinity_emb.types import (
    ChunkResult,
    EmbeddingDtype,
    EmbedOptions,
    EmbedResult,
    Modality,
    ModelCard,
    MultiVectorResult,
    OverloadStatus,
    ScoreOptions,
    ScoreResult,
    SparseResult,
    Task,
    TokenInfo,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DIM = 8
_EMBED = EmbedOptions()
_SCORE = ScoreOptions()
MAX_TOKENS = 16
VOCABULARY = 1000
LABELS = ("neutral", "joy", "anger")


def fake_vector(item: object, dim: int = DIM) -> np.ndarray:
    """Numbers in -1..1 that depend on the input alone."""
    digest = hashlib.shake_256(repr(item).encode("utf-8", "surrogatepass")).digest(2 * dim)
    raw = np.frombuffer(digest, dtype="<u2").astype(np.float32)
    return raw / 32768.0 - 1.0


def fake_score(query: str, document: str) -> float:
    """A logit in -4..4 that depends on the pair alone."""
    digest = hashlib.sha256(f"{query}\0{document}".encode()).digest()
    return digest[0] / 32.0 - 4.0


def count_tokens(text: str) -> int:
    """Words, and two special tokens."""
    return len(text.split()) + 2


@dataclass
class FakeEngine:
    """The face of `AsyncEmbeddingEngine` that the server uses.

    Attributes:
        name: Served name.
        tasks: What it can do.
        error: Raised by every task if set.
        hold: Tasks wait for this event if set.
        cancelled: How often a waiting task was cancelled.
        calls: What each task was called with.
    """

    name: str = "fake/model"
    tasks: frozenset[Task] = frozenset({Task.EMBED, Task.RERANK, Task.CLASSIFY})
    embedding_dtype: EmbeddingDtype = EmbeddingDtype.FLOAT32
    is_healthy: bool = True
    sees_neighbours: bool = False
    error: BaseException | None = None
    hold: asyncio.Event | None = None
    cancelled: int = 0
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    max_client_batch_size: int = 2048
    dim: int = DIM
    modalities: frozenset[Modality] = frozenset({Modality.TEXT})

    def __post_init__(self) -> None:
        self.engine_args = SimpleNamespace(
            embedding_dtype=self.embedding_dtype,
            queue_size=32_000,
            max_batch_tokens=None,
            max_client_batch_size=self.max_client_batch_size,
            threads=None,
            served_model_name=self.name,
        )
        self.card = ModelCard(
            served_name=self.name,
            model_id=self.name,
            source="memory",
            revision=None,
            tasks=self.tasks,
            modalities=self.modalities,
            backend="dummy",
            device="cpu",
            dtype="float32",
            dim=self.dim if Task.EMBED in self.tasks else 0,
            max_length=MAX_TOKENS,
            pooling="mean",
            normalized=True,
            labels=LABELS,
            prompts={"query": "query: ", "code": "code: "},
            default_prompt_name=None,
            batch_size=32,
            extra={"fingerprint": "0123456789abcdef", "fidelity_min_cosine": 0.99995, "fidelity_reference": "a double"},
        )

    @property
    def is_running(self) -> bool:
        return self.is_healthy

    async def astart(self) -> None:
        self.is_healthy = True

    async def astop(self) -> None:
        self.is_healthy = False

    async def embed_result(
        self, inputs: Sequence[Any], options: EmbedOptions = _EMBED, call: Any = None
    ) -> EmbedResult:
        await self._work(Task.EMBED, inputs, options, call)
        if options.dimensions is not None and not 1 <= options.dimensions <= self.dim:
            raise DimensionsError(f"dimensions must be in 1..{self.dim}.", param="dimensions")
        vectors = np.stack([fake_vector(self._prompted(item, options), self.dim) for item in inputs])
        if options.dimensions:
            vectors = vectors[:, : options.dimensions]
        if options.normalize is not False:
            vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return EmbedResult(vectors.astype(np.float32), self._usage(inputs, options.text.truncate))

    async def media_result(
        self,
        sources: Sequence[Any],
        modality: Modality,
        options: EmbedOptions = _EMBED,
        call: Any = None,
        places: Sequence[int] | None = None,
    ) -> EmbedResult:
        check_modality(self.card, modality)
        if self.error is not None:
            raise self.error
        self.calls.append((Task.EMBED, modality, list(sources), options, call, places))
        if options.dimensions is not None and not 1 <= options.dimensions <= self.dim:
            raise DimensionsError(f"dimensions must be in 1..{self.dim}.", param="dimensions")
        vectors = np.stack([fake_vector(source, self.dim) for source in sources])[:, : options.dimensions or self.dim]
        tokens = 10 * len(sources)
        return EmbedResult(vectors, Usage(tokens, media_tokens=tokens, image_pixels=100 * len(sources)))

    async def rerank_result(
        self, query: str, documents: Sequence[str], options: ScoreOptions = _SCORE, call: Any = None
    ) -> ScoreResult:
        await self._work(Task.RERANK, documents, options, call)
        logits = np.array([fake_score(query, document) for document in documents], dtype=np.float32)
        scores = logits if options.raw_scores else 1 / (1 + np.exp(-logits))
        return ScoreResult(scores, self._usage(documents, options.text.truncate))

    async def classify_result(
        self, inputs: Sequence[Any], options: ScoreOptions = _SCORE, call: Any = None
    ) -> ScoreResult:
        await self._work(Task.CLASSIFY, inputs, options, call)
        logits = np.stack([fake_vector(repr(item))[: len(LABELS)] for item in inputs])
        exponents = np.exp(logits)
        scores = logits if options.raw_scores else exponents / exponents.sum(axis=1, keepdims=True)
        texts = [" ".join(item) if isinstance(item, tuple) else item for item in inputs]
        return ScoreResult(scores.astype(np.float32), self._usage(texts, options.text.truncate), LABELS)

    async def sparse_result(
        self, inputs: Sequence[Any], options: EmbedOptions = _EMBED, call: Any = None
    ) -> SparseResult:
        await self._work(Task.SPARSE, inputs, options, call)
        words = [np.array([3, 7 + len(str(item))]) for item in inputs]
        weights = [np.array([0.5, 1.25], np.float32) for _ in inputs]
        return SparseResult(words, weights, self._usage(inputs, options.text.truncate))

    async def multi_vector_result(
        self, inputs: Sequence[Any], options: EmbedOptions = _EMBED, call: Any = None
    ) -> MultiVectorResult:
        await self._work(Task.EMBED if Task.EMBED in self.tasks else Task.MULTI_VECTOR, inputs, options, call)
        matrices = [np.stack([fake_vector(word, self.dim) for word in item.split() or [""]]) for item in inputs]
        return MultiVectorResult(matrices, self._usage(inputs, options.text.truncate))

    gives_together = False

    async def fixed_result(
        self, inputs: Sequence[Any], options: EmbedOptions = _EMBED, call: Any = None
    ) -> EmbedResult:
        await self._work(Task.MULTI_VECTOR, inputs, options, call)
        vectors = np.stack([fake_vector(("muvera", item), self.dim) for item in inputs])
        return EmbedResult(vectors, self._usage(inputs, options.text.truncate))

    async def chunks_result(
        self, documents: Sequence[Sequence[str]], options: EmbedOptions = _EMBED, call: Any = None
    ) -> ChunkResult:
        if not self.sees_neighbours:
            raise CapabilityError("It does not pool by the mean.", param="late_chunking")
        await self._work(Task.EMBED, documents, options, call)
        vectors = np.stack([fake_vector((chunk, *chunks), self.dim) for chunks in documents for chunk in chunks])
        spans = [[(index, index + 1) for index in range(len(chunks))] for chunks in documents]
        return ChunkResult(vectors, spans, Usage(sum(map(len, documents))))

    def quantize(self, vectors: np.ndarray, dtype: EmbeddingDtype) -> np.ndarray:
        if dtype is EmbeddingDtype.FLOAT32:
            return vectors
        if dtype in {EmbeddingDtype.BINARY, EmbeddingDtype.UBINARY}:
            packed = np.packbits(vectors > 0, axis=1)
            return packed if dtype is EmbeddingDtype.UBINARY else (packed.astype(np.int16) - 128).astype(np.int8)
        small = np.rint(vectors * 127)
        return small.astype(np.int8) if dtype is EmbeddingDtype.INT8 else (small + 128).astype(np.uint8)

    def tokenize(
        self, texts: Sequence[str], *, add_special_tokens: bool = True, prompt_name: str | None = None
    ) -> list[list[TokenInfo]]:
        self.calls.append(("tokenize", texts, prompt_name))
        found = []
        for text in texts:
            tokens = [
                TokenInfo(10 + len(word), word, False, text.index(word), text.index(word) + len(word))
                for word in text.split()
            ]
            if add_special_tokens:
                tokens = [TokenInfo(1, "[CLS]", True, None, None), *tokens, TokenInfo(2, "[SEP]", True, None, None)]
            found.append(tokens)
        return found

    def decode(self, ids: Sequence[Sequence[int]], *, skip_special_tokens: bool = True) -> list[str]:
        return [" ".join(str(number) for number in row if number > 2 or not skip_special_tokens) for row in ids]

    restarts = 0

    def busy_s(self) -> float:
        return 0.0

    cache_counts = None

    def batch_measures(self) -> None:
        return None

    def waiting_line(self, _limit: int) -> list:
        return []

    def overload_status(self) -> OverloadStatus:
        return OverloadStatus(0.25, 8, 2, 64, 0.5, 1000.0)

    async def _work(self, task: Task, inputs: Sequence[Any], options: Any, call: Any) -> None:
        self.calls.append((task, inputs, options, call))
        if task not in self.tasks and not (task is Task.CLASSIFY and Task.RERANK in self.tasks):
            offered = ", ".join(sorted(self.tasks))
            raise CapabilityError(f"The model {self.name!r} cannot {task}; it offers: {offered}.", param="model")
        if self.error is not None:
            raise self.error
        if len(inputs) > self.max_client_batch_size:
            raise InputTooLargeError(f"At most {self.max_client_batch_size} inputs are allowed.", param="input")
        for item in inputs:
            for number in item if isinstance(item, list) and task is not None and item and type(item[0]) is int else ():
                if not 0 <= number < VOCABULARY:
                    raise InvalidInputError(f"Token id {number} is outside 0..{VOCABULARY - 1}.", param="input")
        if self.hold is not None:
            try:
                await self.hold.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise

    def _prompted(self, item: Any, options: EmbedOptions) -> Any:
        text = options.text
        if isinstance(item, list):
            return item
        name = text.prompt_name or (text.input_type if text.input_type in self.card.prompts else None)
        prompt = text.prompt if text.prompt is not None else self.card.prompts.get(name or "", "")
        return prompt + item

    def _usage(self, inputs: Sequence[Any], truncate: bool) -> Usage:
        counts = [len(item) if isinstance(item, list) else count_tokens(item) for item in inputs]
        truncated = tuple(index for index, count in enumerate(counts) if count > MAX_TOKENS)
        if truncated and not truncate:
            raise InvalidInputError(
                f"Item {truncated[0]} has {counts[truncated[0]]} tokens; the model takes {MAX_TOKENS}.", param="input"
            )
        return Usage(sum(min(count, MAX_TOKENS) for count in counts), truncated)


class FakeArray:
    """The face of `AsyncEngineArray` that the server uses."""

    def __init__(self, *engines: FakeEngine) -> None:
        self.engines = engines

    def __iter__(self) -> Any:
        return iter(self.engines)

    async def astop(self) -> None:
        for engine in self.engines:
            await engine.astop()
