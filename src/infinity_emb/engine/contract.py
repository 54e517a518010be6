"""The methods and return types that code written for the original calls on an engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from infinity_emb.types import (
    ClassifyReturnElement,
    EmbeddingDtype,
    EmbedOptions,
    Modality,
    RerankReturnType,
    ScoreOptions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.types import Call, EmbedResult, FloatArray, ModelCard, ScoreResult, TextInput


class ContractFace(ABC):
    """Builds the original's results from the wide results of `AsyncEmbeddingEngine`."""

    engine_args: EngineArgs

    @property
    @abstractmethod
    def card(self) -> ModelCard:
        """What the engine says about itself."""

    @abstractmethod
    async def embed_result(
        self, inputs: Sequence[TextInput], options: EmbedOptions = ..., call: Call | None = None
    ) -> EmbedResult:
        """See `AsyncEmbeddingEngine`."""

    @abstractmethod
    async def rerank_result(
        self, query: str, documents: Sequence[str], options: ScoreOptions = ..., call: Call | None = None
    ) -> ScoreResult:
        """See `AsyncEmbeddingEngine`."""

    @abstractmethod
    async def classify_result(
        self, inputs: Sequence[TextInput | tuple[str, str]], options: ScoreOptions = ..., call: Call | None = None
    ) -> ScoreResult:
        """See `AsyncEmbeddingEngine`."""

    @abstractmethod
    def quantize(self, vectors: FloatArray, dtype: EmbeddingDtype) -> NDArray[Any]:
        """See `AsyncEmbeddingEngine`."""

    async def embed(self, sentences: list[str], matryoshka_dim: int | None = None) -> tuple[list[NDArray[Any]], int]:
        """Vectors `[dim]` of each sentence and the tokens they took; in `embedding_dtype` of the engine arguments."""
        if not sentences:
            return [], 0
        result = await self.embed_result(sentences, EmbedOptions(dimensions=matryoshka_dim))
        vectors = self.quantize(result.vectors, self.engine_args.embedding_dtype)
        return list(vectors), result.usage.prompt_tokens

    async def rerank(
        self, *, query: str, docs: list[str], raw_scores: bool = False, top_n: int | None = None
    ) -> tuple[list[RerankReturnType], int]:
        """Documents by falling relevance; `top_n` of None or at most 0 keeps all."""
        if not docs:
            return [], 0
        result = await self.rerank_result(query, docs, ScoreOptions(raw_scores=raw_scores))
        order = (-result.scores).argsort(kind="stable")
        if top_n is not None and top_n > 0:
            order = order[:top_n]
        ranked = [RerankReturnType(float(result.scores[index]), docs[index], int(index)) for index in order]
        return ranked, result.usage.prompt_tokens

    async def classify(
        self, *, sentences: list[str], raw_scores: bool = False
    ) -> tuple[list[list[ClassifyReturnElement]], int]:
        """For each sentence every label with its score, best first."""
        if not sentences:
            return [], 0
        result = await self.classify_result(sentences, ScoreOptions(raw_scores=raw_scores))
        answers = [
            [
                ClassifyReturnElement(label=result.labels[column], score=float(row[column]))
                for column in (-row).argsort(kind="stable")
            ]
            for row in result.scores
        ]
        return answers, result.usage.prompt_tokens

    async def image_embed(
        self, *, images: list[Any], matryoshka_dim: int | None = None
    ) -> tuple[list[NDArray[Any]], int]:
        """Vectors `[dim]` of each image (a URL, the bytes of a file, or a `PIL.Image`), and what they cost."""
        return await self._embed_media(Modality.IMAGE, images, matryoshka_dim)

    async def audio_embed(
        self, *, audios: list[Any], matryoshka_dim: int | None = None
    ) -> tuple[list[NDArray[Any]], int]:
        """Vectors `[dim]` of each sound (a URL, or the bytes of a file), and what they cost."""
        return await self._embed_media(Modality.AUDIO, audios, matryoshka_dim)

    @abstractmethod
    async def _embed_media(
        self, modality: Modality, sources: list[Any], dimensions: int | None
    ) -> tuple[list[NDArray[Any]], int]: ...
