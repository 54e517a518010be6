"""Several engines for callers without an event loop; task methods return futures."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from infinity_emb.engine.array import AsyncEngineArray
from infinity_emb.engine.background import BackgroundLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.types import ClassifyReturnElement, RerankReturnType


class SyncEngineArray:
    """Engines by served name. They start at once, in a thread of their own, and end with `stop` or the process.

    Args:
        engine_args_array: What to serve; see `AsyncEngineArray` for the errors.
    """

    def __init__(self, engine_args_array: Iterable[EngineArgs]) -> None:
        self.async_engine_array = AsyncEngineArray.from_args(engine_args_array)
        self._background = BackgroundLoop()
        self._finalizer = weakref.finalize(self, _shut_down, self.async_engine_array, self._background)
        try:
            for engine in self.async_engine_array:
                engine.start()
        except BaseException:
            self._finalizer()
            raise

    @classmethod
    def from_args(cls, engine_args_array: Iterable[EngineArgs]) -> SyncEngineArray:
        """The usual way to make one."""
        return cls(engine_args_array)

    @property
    def is_running(self) -> bool:
        """Whether every engine runs."""
        return self.async_engine_array.is_running()

    def stop(self) -> None:
        """Answer what was accepted, then end; safe to call twice."""
        self._finalizer()

    def __enter__(self) -> SyncEngineArray:  # noqa: PYI034 - the original's users read the class name
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def async_run(self, function: Callable[..., Coroutine[Any, Any, Any]], *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a coroutine function in the engines' thread."""
        return self._background.submit(function(*args, **kwargs))

    def embed(
        self, *, model: str | int, sentences: list[str], matryoshka_dim: int | None = None
    ) -> Future[tuple[list[NDArray[Any]], int]]:
        """See `AsyncEmbeddingEngine.embed`."""
        return self.async_run(
            self.async_engine_array.embed, model=model, sentences=sentences, matryoshka_dim=matryoshka_dim
        )

    def rerank(
        self, *, model: str | int, query: str, docs: list[str], raw_scores: bool = False, top_n: int | None = None
    ) -> Future[tuple[list[RerankReturnType], int]]:
        """See `AsyncEmbeddingEngine.rerank`."""
        return self.async_run(
            self.async_engine_array.rerank, model=model, query=query, docs=docs, raw_scores=raw_scores, top_n=top_n
        )

    def classify(
        self, *, model: str | int, sentences: list[str], raw_scores: bool = False
    ) -> Future[tuple[list[list[ClassifyReturnElement]], int]]:
        """See `AsyncEmbeddingEngine.classify`."""
        return self.async_run(self.async_engine_array.classify, model=model, sentences=sentences, raw_scores=raw_scores)

    def image_embed(
        self, *, model: str | int, images: list[Any], matryoshka_dim: int | None = None
    ) -> Future[tuple[list[NDArray[Any]], int]]:
        """See `AsyncEmbeddingEngine.image_embed`."""
        return self.async_run(
            self.async_engine_array.image_embed, model=model, images=images, matryoshka_dim=matryoshka_dim
        )

    def audio_embed(
        self, *, model: str | int, audios: list[Any], matryoshka_dim: int | None = None
    ) -> Future[tuple[list[NDArray[Any]], int]]:
        """See `AsyncEmbeddingEngine.audio_embed`."""
        return self.async_run(
            self.async_engine_array.audio_embed, model=model, audios=audios, matryoshka_dim=matryoshka_dim
        )


def _shut_down(array: AsyncEngineArray, background: BackgroundLoop) -> None:
    """Must not refer to the array's owner, or it would never be collected.

    Not `astop`: when the process ends, no executor takes work any more.
    """
    for engine in array:
        engine.stop()
    background.stop()
