"""Several engines, found by the name they are served under."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
from infinity_emb.errors import ConfigurationError, InfinityError, ModelNotFoundError
from infinity_emb.progress import PROGRESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.types import ClassifyReturnElement, RerankReturnType


class _NoSuchModelError(ModelNotFoundError, IndexError):
    """Also an IndexError, which code written for the original catches."""


class AsyncEngineArray:
    """Engines by served name; a single engine answers to any name.

    Args:
        engines: At least one, each under a name of its own.

    Raises:
        ConfigurationError: No engine, or two of one name; it is a ValueError.
    """

    def __init__(self, engines: Iterable[AsyncEmbeddingEngine]) -> None:
        self._engines: dict[str, AsyncEmbeddingEngine] = {}
        for engine in engines:
            name = engine.engine_args.served_model_name
            if name in self._engines:
                raise _twice(name)
            self._engines[name] = engine
        if not self._engines:
            raise ConfigurationError("There is no model to serve; name at least one.", param="model_id")

    @classmethod
    def from_args(cls, engine_args_array: Iterable[EngineArgs]) -> AsyncEngineArray:
        """Load an engine for each; names are checked before anything is loaded."""
        return cls(AsyncEmbeddingEngine.from_args(item) for item in _checked(engine_args_array))

    @classmethod
    def start_each(cls, engine_args_array: Iterable[EngineArgs]) -> tuple[AsyncEngineArray, dict[str, InfinityError]]:
        """Load and start an engine for each, and go on where one fails.

        Returns:
            Those that run, and why the others do not, by served name.

        Raises:
            InfinityError: None can be brought up; it is the first one's error.
        """
        engines: list[AsyncEmbeddingEngine] = []
        failures: dict[str, InfinityError] = {}
        for args in _checked(engine_args_array):
            started = _started(args)
            if isinstance(started, InfinityError):
                failures[args.served_model_name] = started
            else:
                engines.append(started)
        if failures and not engines:
            raise next(iter(failures.values()))
        return cls(engines), failures

    def __iter__(self) -> Iterator[AsyncEmbeddingEngine]:
        return iter(self._engines.values())

    def __len__(self) -> int:
        return len(self._engines)

    def __getitem__(self, index_or_name: str | int) -> AsyncEmbeddingEngine:
        """The engine of that name or number.

        Raises:
            ModelNotFoundError: There is none; it is also an IndexError.
        """
        if len(self._engines) == 1:
            return next(iter(self._engines.values()))
        if isinstance(index_or_name, int):
            engines = list(self._engines.values())
            if -len(engines) <= index_or_name < len(engines):
                return engines[index_or_name]
        elif index_or_name in self._engines:
            return self._engines[index_or_name]
        raise _NoSuchModelError(
            f"No model is served under the name {index_or_name!r}. Available: {', '.join(self._engines)}.",
            param="model",
        )

    @property
    def engines_dict(self) -> dict[str, AsyncEmbeddingEngine]:
        """Served name → engine."""
        return dict(self._engines)

    async def astart(self) -> None:
        """Start every engine."""
        for engine in self:
            await engine.astart()

    async def astop(self) -> None:
        """Stop every engine, all at once; each finishes what it accepted."""
        await asyncio.gather(*(engine.astop() for engine in self))

    async def __aenter__(self) -> AsyncEngineArray:  # noqa: PYI034 - the original's users read the class name
        await self.astart()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.astop()

    def is_running(self) -> bool:
        """Whether every engine runs."""
        return all(engine.is_running for engine in self)

    async def embed(
        self, *, model: str | int, sentences: list[str], matryoshka_dim: int | None = None
    ) -> tuple[list[NDArray[Any]], int]:
        """See `AsyncEmbeddingEngine.embed`."""
        return await self[model].embed(sentences, matryoshka_dim=matryoshka_dim)

    async def rerank(
        self, *, model: str | int, query: str, docs: list[str], raw_scores: bool = False, top_n: int | None = None
    ) -> tuple[list[RerankReturnType], int]:
        """See `AsyncEmbeddingEngine.rerank`."""
        return await self[model].rerank(query=query, docs=docs, raw_scores=raw_scores, top_n=top_n)

    async def classify(
        self, *, model: str | int, sentences: list[str], raw_scores: bool = False
    ) -> tuple[list[list[ClassifyReturnElement]], int]:
        """See `AsyncEmbeddingEngine.classify`."""
        return await self[model].classify(sentences=sentences, raw_scores=raw_scores)

    async def image_embed(
        self, *, model: str | int, images: list[Any], matryoshka_dim: int | None = None
    ) -> tuple[list[NDArray[Any]], int]:
        """See `AsyncEmbeddingEngine.image_embed`."""
        return await self[model].image_embed(images=images, matryoshka_dim=matryoshka_dim)

    async def audio_embed(
        self, *, model: str | int, audios: list[Any], matryoshka_dim: int | None = None
    ) -> tuple[list[NDArray[Any]], int]:
        """See `AsyncEmbeddingEngine.audio_embed`."""
        return await self[model].audio_embed(audios=audios, matryoshka_dim=matryoshka_dim)


def _checked(engine_args_array: Iterable[EngineArgs]) -> list[EngineArgs]:
    args = list(engine_args_array)
    names = [item.served_model_name for item in args]
    for name in names:
        if names.count(name) > 1:
            raise _twice(name)
    return args


def _started(args: EngineArgs) -> AsyncEmbeddingEngine | InfinityError:
    PROGRESS.begin(args.served_model_name)
    try:
        engine = AsyncEmbeddingEngine.from_args(args)
        engine.start()
    except InfinityError as error:
        return error
    finally:
        PROGRESS.end()
    return engine


def _twice(name: str) -> ConfigurationError:
    return ConfigurationError(
        f"Two models would be served under the name {name!r}. Give each its own with --served-model-name.",
        param="served_model_name",
    )
