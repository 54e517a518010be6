"""Images or sounds of a model that also reads text: another view of its checkpoint, with a waiting line of its own."""

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from infinity_emb.engine.media import Media, MediaPolicy
from infinity_emb.engine.media.data_uri import is_data_uri, read_data_uri
from infinity_emb.engine.media.refusal import MediaRefusedError, Refusal
from infinity_emb.engine.runtime import ModelRuntime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from infinity_emb.backends.base import Backend
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.fidelity.figures import Figures
    from infinity_emb.engine.media import MediaFetcher
    from infinity_emb.models.features import Features
    from infinity_emb.models.preprocess.media import MediaPreprocessor
    from infinity_emb.models.spec.model import ModelSpec

_log = logging.getLogger("infinity_emb")
# Decoded items are large: those that wait may take so much memory together.
WAITING_BYTES = 1 << 30
# Items of one request, which are all decoded before the first is computed.
MAX_ITEMS = 256
_NUMBER_BYTES = 4


@dataclass(frozen=True, slots=True)
class LoadedTower:
    """Everything that is needed to read one modality.

    Attributes:
        spec: This view of the checkpoint.
        preprocessor: Decodes.
        backends: One a replica.
        renew: Loads the backend of one replica (by number) again.
        figures: Result of the self-check; None if there was none.
    """

    spec: ModelSpec
    preprocessor: MediaPreprocessor
    backends: tuple[Backend, ...]
    renew: Callable[[int], Backend]
    figures: Figures | None = None

    @property
    def facts(self) -> dict[str, str | int | float]:
        """For the model's card."""
        prefix = f"{self.spec.reads}_"
        checked = {} if self.figures is None else self.figures.facts(prefix)
        return {f"{prefix}dtype": str(self.backends[0].report.dtype), **checked}


class Tower:
    """A loaded tower at work, between `start` and `stop`; one use.

    Args:
        loaded: What it runs.
        args: Of the engine.
    """

    def __init__(self, loaded: LoadedTower, args: EngineArgs) -> None:
        self.loaded = loaded
        self._policy = MediaPolicy.from_engine_args(args)
        (media,) = (media for media in loaded.spec.media if media.modality is loaded.spec.reads)
        item_bytes = sum(math.prod(shape) for shape in media.arrays.values()) * _NUMBER_BYTES
        self.runtime = ModelRuntime(
            loaded.backends,
            args.batch_size,
            max(MAX_ITEMS, min(args.queue_size, WAITING_BYTES // item_bytes)),
            None,
            renew=loaded.renew,
            hang_limit_s=args.hang_limit_s,
        )

    def start(self, *, warm: bool) -> None:
        """Let the workers take batches."""
        self.runtime.start()
        if warm:
            self.runtime.warm_up_on(self.loaded.preprocessor.sample())

    def stop(self, grace_s: float) -> LoadedTower:
        """Answer what was accepted within the grace period; what to start again with."""
        ended = self.runtime.stop(grace_s)
        backends = self.runtime.backends
        if not ended:  # a backend that still computes cannot serve the next start
            backends = tuple(self.loaded.renew(number) for number in range(len(backends)))
        return replace(self.loaded, backends=backends)

    async def features(
        self, sources: Sequence[Any], places: Sequence[int], fetcher: MediaFetcher, pool: Executor
    ) -> list[Features]:
        """Fetch and decode, all or nothing.

        Args:
            sources: http and data URLs, the bytes of files, or objects that the preprocessor knows.
            places: Of the sources in the request, for messages.
            fetcher: For URLs.
            pool: Decodes.

        Raises:
            MediaError: `item_index` says which one failed.
        """
        kind = self.loaded.spec.reads.value
        found = dict(zip(places, sources, strict=True))
        urls = {place: one for place, one in found.items() if isinstance(one, str) and not is_data_uri(one)}
        if urls:
            media = await fetcher.fetch(list(urls.values()), kind, list(urls))
            found.update(zip(urls, media, strict=True))
        loop = asyncio.get_running_loop()
        work = [loop.run_in_executor(pool, partial(self._read, found[place], place, kind)) for place in places]
        try:
            return list(await asyncio.gather(*work))
        finally:
            for future in work:
                future.cancel()

    def _read(self, source: Any, index: int, kind: str) -> Features:
        if isinstance(source, Media):
            source = source.content
        elif isinstance(source, str):
            try:
                source = read_data_uri(source, kind, self._policy.max_bytes).content
            except MediaRefusedError as error:
                raise error.at(index) from error
        elif isinstance(source, (bytes, bytearray)) and len(source) > self._policy.max_bytes:
            limit = self._policy.max_bytes
            refused = MediaRefusedError(Refusal.TOO_LARGE, f"The file is larger than the {limit} bytes allowed.")
            raise refused.at(index)
        return self.loaded.preprocessor.read(source, index)
