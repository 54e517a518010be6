"""The methods of an engine for images and sounds."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from infinity_emb.engine.contract import ContractFace
from infinity_emb.engine.media import MediaFetcher, MediaPolicy
from infinity_emb.engine.tower import MAX_ITEMS, LoadedTower, Tower
from infinity_emb.engine.usage import media_usage_of
from infinity_emb.engine.vectors import check_dimensions, finish_vectors
from infinity_emb.errors import CapabilityError, InputTooLargeError, NotReadyError
from infinity_emb.types import EmbedOptions, EmbedResult, Modality, Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ThreadPoolExecutor

    from infinity_emb.backends.base import Arrays
    from infinity_emb.config.engine_args import EngineArgs
    from infinity_emb.engine.heads import Names
    from infinity_emb.engine.loader import LoadedModel
    from infinity_emb.engine.runtime import ModelRuntime
    from infinity_emb.models.features import Features
    from infinity_emb.types import Call, ModelCard


class Towers:
    """The towers of one engine at work, and what fetches for them; one use.

    Args:
        loaded: By modality.
        args: Of the engine.
    """

    def __init__(self, loaded: dict[Modality, LoadedTower], args: EngineArgs) -> None:
        self._towers = {modality: Tower(tower, args) for modality, tower in loaded.items()}
        self.fetcher = MediaFetcher(MediaPolicy.from_engine_args(args)) if loaded else None

    def __getitem__(self, modality: Modality) -> Tower:
        return self._towers[modality]

    @property
    def runtimes(self) -> list[ModelRuntime]:
        """What computes, one a tower."""
        return [tower.runtime for tower in self._towers.values()]

    def start(self, *, warm: bool) -> None:
        """Start every tower; on a failure none is left running."""
        try:
            for tower in self._towers.values():
                tower.start(warm=warm)
        except BaseException:
            self.stop(0.0)
            raise

    def stop(self, grace_s: float) -> dict[Modality, LoadedTower]:
        """Stop every tower; what to start again with."""
        if self.fetcher is not None:
            self.fetcher.close()
        return {modality: tower.stop(grace_s) for modality, tower in self._towers.items()}


class MediaFace(ContractFace):
    """Embeds images and sounds of models that read them."""

    _model: LoadedModel
    _towers: Towers | None = None
    _preprocessing: ThreadPoolExecutor | None = None

    @abstractmethod
    def _checked(self, inputs: Sequence[Any]) -> Sequence[Any]: ...

    @abstractmethod
    async def _compute(
        self, features: list[Features], call: Call | None, runtime: ModelRuntime | None = None, wanted: Names = ...
    ) -> Arrays: ...

    async def media_result(
        self,
        sources: Sequence[Any],
        modality: Modality,
        options: EmbedOptions = EmbedOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
        places: Sequence[int] | None = None,
    ) -> EmbedResult:
        """Vectors of images or sounds, in the same space as those of texts.

        Args:
            sources: http, https and data URLs, the bytes of files, or `PIL.Image` objects.
            modality: What they are.
            options: `normalize` and `dimensions` have a meaning here.
            call: Circumstances of the request.
            places: Of the sources in the request, for messages; None is their own order.

        Raises:
            CapabilityError: The model does not read them.
            MediaError: An item cannot be fetched or decoded; `item_index` says which.
            RequestError: Too many items, or too many dimensions.
            UnavailableError: Overloaded, stopping, or too late.
            BackendError: The model failed on an item.
        """
        check_modality(self.card, modality)
        check_dimensions(self._model.spec, options.dimensions)
        self._checked(sources)
        if len(sources) > MAX_ITEMS:
            raise InputTooLargeError(
                f"{len(sources)} items of {modality.value} in one request; at most {MAX_ITEMS} are allowed. Send "
                "several smaller requests.",
                param="input",
            )
        towers, pool = self._towers, self._preprocessing
        if towers is None or towers.fetcher is None or pool is None:
            raise NotReadyError("The engine stopped before the request was read.", retry_after_s=5)
        tower = towers[modality]
        tower.runtime.check_room(len(sources))
        started_s = time.monotonic()
        features = await tower.features(
            sources, range(len(sources)) if places is None else places, towers.fetcher, pool
        )
        if call is not None and call.times is not None:
            call.times.model = self.card.served_name
            call.times.tokenize_s += time.monotonic() - started_s
        outputs = await self._compute(features, call, tower.runtime)
        return EmbedResult(finish_vectors(outputs, self._model.spec, options), media_usage_of(features))

    async def _embed_media(
        self, modality: Modality, sources: list[Any], dimensions: int | None
    ) -> tuple[list[Any], int]:
        check_modality(self.card, modality)
        if not sources:
            return [], 0
        result = await self.media_result(sources, modality, EmbedOptions(dimensions=dimensions))
        vectors = self.quantize(result.vectors, self.engine_args.embedding_dtype)
        return list(vectors), result.usage.prompt_tokens


def stop_at_once(runtime: ModelRuntime, towers: Towers) -> None:
    """What becomes of an engine that nobody stopped; it must not refer to the engine, which would live for ever."""
    towers.stop(0.0)
    runtime.stop(0.0)


def capabilities_of(card: ModelCard) -> list[str]:
    """The original's words for what a model can do: its tasks, then `image_embed` and `audio_embed`."""
    words = [task.value for task in Task if task in card.tasks]
    if Task.EMBED in card.tasks:
        words += [f"{kind.value}_embed" for kind in (Modality.IMAGE, Modality.AUDIO) if kind in card.modalities]
    return words


def check_modality(card: ModelCard, modality: Modality) -> None:
    """Raise `CapabilityError`, naming what the model can do, unless it embeds images or sounds."""
    if modality in card.modalities and Task.EMBED in card.tasks:
        return
    offered = ", ".join(sorted(f"{task.value} {kind.value}" for task in card.tasks for kind in card.modalities))
    raise CapabilityError(
        f"The model {card.served_name!r} cannot embed {modality.value}; it offers: {offered}. "
        f"Send this request to a model that reads {modality.value}.",
        param="modality",
    )
