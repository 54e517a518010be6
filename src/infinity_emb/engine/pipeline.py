"""The shortest way in: a model in this process, arrays out, no event loop needed."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
from infinity_emb.engine.background import BackgroundLoop
from infinity_emb.engine.tower import MAX_ITEMS
from infinity_emb.types import EmbedOptions, Modality, TextOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from infinity_emb.types import (
        ClassifyReturnElement,
        EmbedResult,
        FloatArray,
        InputType,
        ModelCard,
        RerankReturnType,
        TextInput,
    )

# Large enough to keep the device busy, small enough that a long list neither holds every token at once nor is refused.
CHUNK_ITEMS = 512
# The next chunk is tokenized while this one computes.
CHUNKS_AHEAD = 1


class InfinityPipeline:
    """One model in this process.

    Args:
        model: Repository id or local folder; the embedded default if left out.
        engine_args: Any further field of `EngineArgs`, such as `engine="onnxruntime"` or `dtype="float32"`.

    Raises:
        LoadError: The model cannot be brought up.
        ConfigurationError: An option is wrong.

    Use it in a `with` block or call `close`; it also ends with the process.
    """

    def __init__(self, model: str | None = None, **engine_args: Any) -> None:
        if model is not None:
            engine_args["model_name_or_path"] = model
        self._engine = AsyncEmbeddingEngine(EngineArgs(**engine_args))
        self._background = BackgroundLoop()
        self._finalizer = weakref.finalize(self, _shut_down, self._engine, self._background)
        try:
            self._engine.start()
        except BaseException:
            self._finalizer()
            raise

    @property
    def card(self) -> ModelCard:
        """What the model says about itself."""
        return self._engine.card

    def encode(
        self,
        texts: str | Sequence[TextInput],
        *,
        prompt: str | None = None,
        prompt_name: str | None = None,
        input_type: InputType | None = None,
        normalize: bool | None = None,
        dimensions: int | None = None,
    ) -> FloatArray:
        """Vectors of texts.

        Args:
            texts: A text, or a list of texts (or of lists of the model's token ids).
            prompt: Put before each text; see `TextOptions`.
            prompt_name: Name of one of the model's prompts.
            input_type: `query` or `document`.
            normalize: Unit length yes or no; None is what the repository says.
            dimensions: Keep so many dimensions.

        Returns:
            Float32 array `[n, dim]` in input order; `[dim]` is never returned, a single text gives `[1, dim]`.
        """
        options = EmbedOptions(TextOptions(prompt, prompt_name, input_type), normalize, dimensions)
        return self._background.submit(self._encode(_as_list(texts), options)).result()

    def encode_media(
        self,
        sources: Sequence[Any],
        modality: Modality | str = Modality.IMAGE,
        *,
        normalize: bool | None = None,
        dimensions: int | None = None,
    ) -> FloatArray:
        """Vectors of images or sounds, in the space of those of texts.

        Args:
            sources: URLs (also `data:`), the bytes of files, or `PIL.Image` objects.
            modality: `image` or `audio`.
            normalize: See `encode`.
            dimensions: See `encode`.

        Returns:
            Float32 array `[n, dim]` in input order.

        Raises:
            CapabilityError: The model does not read them.
            MediaError: One cannot be fetched or decoded; `item_index` says which of at most 256 that are read together.
        """
        options = EmbedOptions(normalize=normalize, dimensions=dimensions)
        return self._background.submit(self.aencode_media(sources, modality, options)).result()

    async def aencode_media(
        self, sources: Sequence[Any], modality: Modality | str = Modality.IMAGE, options: EmbedOptions | None = None
    ) -> FloatArray:
        """As `encode_media`, for code that runs in an event loop."""
        kind, chosen = Modality(modality), options or EmbedOptions()
        embed = partial(self._engine.media_result, modality=kind, options=chosen)
        return await self._in_chunks(sources, embed, chosen, MAX_ITEMS)

    async def aencode(self, texts: str | Sequence[TextInput], options: EmbedOptions | None = None) -> FloatArray:
        """As `encode`, for code that runs in an event loop."""
        return await self._encode(_as_list(texts), options or EmbedOptions())

    def rerank(
        self, query: str, documents: Sequence[str], *, top_n: int | None = None, raw_scores: bool = False
    ) -> list[RerankReturnType]:
        """Documents by falling relevance to the query."""
        return self._background.submit(self.arerank(query, documents, top_n=top_n, raw_scores=raw_scores)).result()

    async def arerank(
        self, query: str, documents: Sequence[str], *, top_n: int | None = None, raw_scores: bool = False
    ) -> list[RerankReturnType]:
        """As `rerank`, for code that runs in an event loop."""
        ranked, _ = await self._engine.rerank(query=query, docs=list(documents), raw_scores=raw_scores, top_n=top_n)
        return ranked

    def classify(self, texts: str | Sequence[str], *, raw_scores: bool = False) -> list[list[ClassifyReturnElement]]:
        """For each text every label with its score, best first."""
        return self._background.submit(self.aclassify(texts, raw_scores=raw_scores)).result()

    async def aclassify(
        self, texts: str | Sequence[str], *, raw_scores: bool = False
    ) -> list[list[ClassifyReturnElement]]:
        """As `classify`, for code that runs in an event loop."""
        sentences = [texts] if isinstance(texts, str) else list(texts)
        answers, _ = await self._engine.classify(sentences=sentences, raw_scores=raw_scores)
        return answers

    def close(self) -> None:
        """Stop and give the memory back; safe to call twice."""
        self._finalizer()

    def __enter__(self) -> InfinityPipeline:  # noqa: PYI034 - a plain class name reads better in the docs
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _encode(self, texts: Sequence[TextInput], options: EmbedOptions) -> FloatArray:
        embed = partial(self._engine.embed_result, options=options)
        return await self._in_chunks(texts, embed, options, CHUNK_ITEMS)

    async def _in_chunks(
        self, inputs: Sequence[Any], embed: Callable[..., Awaitable[EmbedResult]], options: EmbedOptions, most: int
    ) -> FloatArray:
        if not inputs:
            return np.empty((0, options.dimensions or self._engine.card.dim), np.float32)
        size = min(most, self._engine.engine_args.max_client_batch_size)
        chunks = [inputs[start : start + size] for start in range(0, len(inputs), size)]
        waiting: deque[asyncio.Future[EmbedResult]] = deque()
        parts: list[FloatArray] = []
        try:
            for chunk in chunks:
                waiting.append(asyncio.ensure_future(embed(chunk)))
                if len(waiting) > CHUNKS_AHEAD:
                    parts.append((await waiting.popleft()).vectors)
            while waiting:
                parts.append((await waiting.popleft()).vectors)
        finally:
            for task in waiting:
                task.cancel()
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _as_list(texts: str | Sequence[TextInput]) -> Sequence[TextInput]:
    return [texts] if isinstance(texts, str) else texts


def _shut_down(engine: AsyncEmbeddingEngine, background: BackgroundLoop) -> None:
    """Must not refer to the pipeline, or it would never be collected."""
    engine.stop()
    background.stop()
    engine.close()
