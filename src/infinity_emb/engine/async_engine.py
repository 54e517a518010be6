"""Hot path. The engine: one model, from inputs to results."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from infinity_emb.config.engine_args import EngineArgs
from infinity_emb.engine.cache import make_cache
from infinity_emb.engine.heads import DENSE
from infinity_emb.engine.inputs import check_list, is_small
from infinity_emb.engine.kinds import VERBS, KindsFace
from infinity_emb.engine.loader import LoadedModel, load
from infinity_emb.engine.media_face import Towers, capabilities_of, stop_at_once
from infinity_emb.engine.overload import overload_of
from infinity_emb.engine.routes import RouteEngines
from infinity_emb.engine.runtime import ModelRuntime
from infinity_emb.engine.usage import usage_of
from infinity_emb.engine.vectors import activate, check_dimensions, finish_vectors, sigmoid
from infinity_emb.errors import (
    BackendError,
    CapabilityError,
    DeadlineExceededError,
    NotReadyError,
    OutOfMemoryError,
    RequestError,
)
from infinity_emb.models.quantize import quantize
from infinity_emb.types import (
    Call,
    EmbedOptions,
    EmbedResult,
    OverloadStatus,
    ScoreOptions,
    ScoreResult,
    Task,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from infinity_emb.backends.base import Arrays
    from infinity_emb.engine.cache import CacheCounts, EmbeddingCache
    from infinity_emb.engine.heads import Names
    from infinity_emb.models.features import Features
    from infinity_emb.scheduler.measures import BatchMeasures
    from infinity_emb.scheduler.waiting import Waiting
    from infinity_emb.types import EmbeddingDtype, FloatArray, ModelCard, TextInput, TextOptions

PREPROCESS_THREADS = 2
STOP_GRACE_S = 30.0


class _NotStartedError(NotReadyError, ValueError):
    """Also a ValueError, which code written for the original catches."""


class AsyncEmbeddingEngine(KindsFace):
    """Serves one model. Weights load in the constructor; work begins with `astart`.

    Args:
        engine_args: What to serve and how.
        options: Fields of `EngineArgs` in its place; deprecated, LangChain's `InfinityEmbeddingsLocal` calls it so.

    Raises:
        LoadError: The model cannot be brought up.
        ConfigurationError: Options are wrong.
        MissingExtraError: A library is not installed.
    """

    def __init__(self, engine_args: EngineArgs | None = None, **options: Any) -> None:
        if engine_args is None:
            message = "AsyncEmbeddingEngine(**options) is deprecated; use AsyncEmbeddingEngine.from_args(EngineArgs(…))"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            engine_args = EngineArgs(**options)
        elif options:
            raise TypeError(f"give EngineArgs or single options, not both: {', '.join(options)}")
        model = load(engine_args)
        self._adopt(engine_args, model, make_cache(engine_args, model.card, model.spec))

    def _adopt(self, engine_args: EngineArgs, model: LoadedModel, cache: EmbeddingCache | None) -> None:
        """Become the engine of a loaded model, which owns it from here on."""
        self.engine_args, self._cache = engine_args, cache
        self._model = replace(model, routes={})
        engines: dict[str, AsyncEmbeddingEngine] = {}
        for name, other in model.routes.items():
            engine = engines[name] = AsyncEmbeddingEngine.__new__(AsyncEmbeddingEngine)
            own_cache = None if cache is None else cache.of_route(name)
            engine._adopt(engine_args, other, own_cache)  # noqa: SLF001 - of this very class
        self._routes = RouteEngines(model.spec, engines)
        self._runtime: ModelRuntime | None = None
        self._preprocessing: ThreadPoolExecutor | None = None
        self._turn = threading.Lock()  # no asyncio lock: an engine may be used by one event loop after another
        self._finalizer: weakref.finalize[..., AsyncEmbeddingEngine] | None = None

    @classmethod
    def from_args(cls, engine_args: EngineArgs) -> AsyncEmbeddingEngine:
        """The usual way to make one."""
        return cls(engine_args)

    @property
    def card(self) -> ModelCard:
        """What this engine says about itself."""
        return self._model.card

    @property
    def is_running(self) -> bool:
        """Between `astart` and `astop`."""
        return self._runtime is not None

    @property
    def running(self) -> bool:
        """The name that `is_running` had in early releases of the original, which LangChain reads."""
        return self.is_running

    @property
    def is_healthy(self) -> bool:
        """Whether a request sent now can be answered."""
        return self.is_running and all(runtime.alive for runtime in self.runtimes)

    @property
    def restarts(self) -> int:
        """How often a worker that died or hung was replaced since the engine started."""
        return sum(runtime.restarts for runtime in self.runtimes)

    @property
    def runtimes(self) -> list[ModelRuntime]:
        """That of texts, then those of other routes and modalities; empty unless the engine runs."""
        runtime, towers = self._runtime, self._towers
        if runtime is None:
            return []
        return [runtime, *self._routes.runtimes, *(() if towers is None else towers.runtimes)]

    @property
    def cache_counts(self) -> CacheCounts | None:
        """Hits and misses of the vector cache; None if there is none."""
        return None if self._cache is None else self._cache.counts

    @property
    def capabilities(self) -> set[str]:
        """What it can do: `embed`, `rerank` or `classify`; `image_embed` and `audio_embed` where it reads these."""
        return set(capabilities_of(self._model.card))

    async def astart(self) -> None:
        """Begin to serve. Does nothing if it runs already; may follow `astop`."""
        if self._runtime is None:
            await asyncio.get_running_loop().run_in_executor(None, self.start)

    async def astop(self) -> None:
        """Answer what was accepted, then stop. Safe to call twice."""
        await asyncio.get_running_loop().run_in_executor(None, self.stop)

    def start(self) -> None:
        """`astart` for a thread without an event loop."""
        with self._turn:
            if self._runtime is not None:
                return
            args, model = self.engine_args, self._model
            runtime = ModelRuntime(
                model.backends,
                args.batch_size,
                args.queue_size,
                args.max_waiting_tokens,
                renew=model.renew,
                hang_limit_s=args.hang_limit_s,
            )
            runtime.start()
            towers = Towers(model.towers, args)
            try:
                if args.model_warmup:
                    runtime.warm_up(model.spec.max_length)
                towers.start(warm=args.model_warmup)
                self._routes.start()
            except BaseException:
                runtime.stop(0.0)
                raise
            # An engine that is dropped, or still runs when the process ends, must not leave threads in native code.
            self._finalizer = weakref.finalize(self, stop_at_once, runtime, towers)
            self._preprocessing = ThreadPoolExecutor(PREPROCESS_THREADS, thread_name_prefix="infinity-preprocess")
            self._runtime, self._towers = runtime, towers

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """`astop` for a thread without an event loop."""
        with self._turn:
            runtime, self._runtime = self._runtime, None
            pool, self._preprocessing = self._preprocessing, None
            if runtime is None or pool is None or self._finalizer is None:
                return
            self._finalizer.detach()
            self._routes.stop(grace_s)
            states, self._token_states = self._token_states, None
            if states is not None:
                states.stop(grace_s)
            towers, self._towers = self._towers, None
            if towers is not None:
                self._model = replace(self._model, towers=towers.stop(grace_s))
            ended = runtime.stop(grace_s)
            pool.shutdown(wait=True)
            backends = runtime.backends
            if not ended:  # a backend that still computes cannot serve the next start
                backends = tuple(self._model.renew(number) for number in range(len(backends)))
            self._model = replace(self._model, backends=backends)

    def close(self) -> None:
        """Stop and give the memory of the weights back; the engine cannot be started again."""
        self.stop()
        if self._cache is not None:
            self._cache.close()
        self._routes.close()
        self._model.close()

    async def __aenter__(self) -> AsyncEmbeddingEngine:  # noqa: PYI034 - the original's users read the class name
        """Start; the engine itself is the context value."""
        await self.astart()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.astop()

    async def embed_result(
        self,
        inputs: Sequence[TextInput],
        options: EmbedOptions = EmbedOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> EmbedResult:
        """Vectors of texts or token ids.

        Raises:
            CapabilityError: The model is no embedder.
            RequestError: An input or option is wrong; the message names it.
            UnavailableError: Overloaded, stopping, or too late.
            BackendError: The model failed on an item.
        """
        self._require(Task.EMBED)
        other, options = self._routes.choose(options)
        if other is not None:
            return await other.embed_result(inputs, options, call)
        check_dimensions(self._model.spec, options.dimensions)
        if options.average_long:
            return await self._embed_long(inputs, options, call)
        preprocessor = self._model.preprocessor
        if self._cache is not None and all(isinstance(item, str) for item in inputs):
            prompt = preprocessor.resolve_prompt(options.text)
            embed = partial(self._embed_some, options=options.text, call=call)
            try:
                outputs, usage = await self._cache.outputs(self._checked(inputs), prompt, options.text, embed)
                return EmbedResult(finish_vectors(outputs, self._model.spec, options), usage)
            except (RequestError, BackendError, OutOfMemoryError):
                pass  # it counts items among those that were computed; computing all of them names the right one
        features = await self._preprocess(inputs, lambda: preprocessor.texts(inputs, options.text), call)
        outputs = await self._compute(features, call)
        return EmbedResult(finish_vectors(outputs, self._model.spec, options), usage_of(features))

    async def _embed_some(
        self, inputs: list[TextInput], *, options: TextOptions, call: Call | None
    ) -> tuple[list[Features], Arrays]:
        preprocessor = self._model.preprocessor
        features = await self._preprocess(inputs, lambda: preprocessor.texts(inputs, options), call)
        return features, await self._compute(features, call)

    async def rerank_result(
        self,
        query: str,
        documents: Sequence[str],
        options: ScoreOptions = ScoreOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> ScoreResult:
        """Relevance of each document `[documents]`: sigmoid of the logit, or the logit with `raw_scores`.

        Raises: as `embed_result`.
        """
        self._require(Task.RERANK)
        if self._model.spec.late is not None:
            return await self._rerank_late(query, documents, options, call)
        preprocessor = self._model.preprocessor
        features = await self._preprocess(documents, lambda: preprocessor.pairs(query, documents, options.text), call)
        logits: FloatArray = (await self._compute(features, call))["logits"][:, 0]
        return ScoreResult(logits if options.raw_scores else sigmoid(logits), usage_of(features))

    async def classify_result(
        self,
        inputs: Sequence[TextInput | tuple[str, str]],
        options: ScoreOptions = ScoreOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> ScoreResult:
        """Score of every label for each text or pair `[items, labels]`; a reranker has one label.

        Raises: as `embed_result`.
        """
        if not self._model.spec.labels:
            self._require(Task.CLASSIFY)
        features = await self._preprocess(inputs, lambda: self._label_features(inputs, options), call)
        logits = (await self._compute(features, call))["logits"]
        spec = self._model.spec
        scores = logits if options.raw_scores else activate(logits, spec.activation)
        return ScoreResult(scores, usage_of(features), spec.labels)

    def quantize(self, vectors: FloatArray, dtype: EmbeddingDtype) -> NDArray[Any]:
        """Smaller number formats of float32 vectors `[n, dim]`; see `models.quantize`."""
        return quantize(vectors, dtype)

    def decode(self, ids: Sequence[Sequence[int]], *, skip_special_tokens: bool = True) -> list[str]:
        """Text of each list of the model's token ids."""
        return self._model.preprocessor.decode(ids, skip_special_tokens=skip_special_tokens)

    def overload_status(self) -> OverloadStatus:
        """How full the waiting line is."""
        return overload_of(self.runtimes)

    def batch_measures(self) -> BatchMeasures | None:
        """What was counted of batches since the start; None unless the engine runs."""
        runtime = self._runtime
        return None if runtime is None else runtime.measures()

    def waiting_line(self, limit: int) -> list[Waiting]:
        """The first requests that wait, most urgent class first."""
        return [one for runtime in self.runtimes for one in runtime.waiting_line(limit)][:limit]

    def busy_s(self) -> float:
        """How long the longest-running batch has been computing."""
        return max((runtime.busy_s() for runtime in self.runtimes), default=0.0)

    def is_overloaded(self) -> bool:
        """Whether a request sent now would be refused."""
        return self.overload_status().queue_fraction >= 1.0

    def _require(self, task: Task) -> None:
        card = self._model.card
        if task not in card.tasks:
            offered = ", ".join(sorted(self.capabilities))
            raise CapabilityError(
                f"The model {card.served_name!r} cannot {VERBS[task]}; it offers: {offered}. "
                f"Send this request to a model that can {VERBS[task]}. {card.extra.get('withheld', '')}".rstrip(),
                param="model",
            )

    async def _preprocess(
        self, inputs: Sequence[Any], make: Callable[[], list[Features]], call: Call | None
    ) -> list[Features]:
        """Check the request's size, then turn it into features: here if it is small, else in the pool."""
        times = None if call is None else call.times
        if times is None:
            return await self._read(inputs, make)
        started_s = time.monotonic()
        features = await self._read(inputs, make)
        times.model = self._model.card.served_name
        times.tokenize_s += time.monotonic() - started_s
        return features

    async def _read(self, inputs: Sequence[Any], make: Callable[[], list[Features]]) -> list[Features]:
        runtime, pool = self._runtime, self._preprocessing
        self._checked(inputs)
        if runtime is None or pool is None:
            raise _NotStartedError("The engine stopped before the request was read.", retry_after_s=5)
        runtime.check_room(len(inputs))
        if is_small(inputs):
            return make()
        try:
            work = pool.submit(make)
        except RuntimeError as error:  # the pool is shut down
            raise _NotStartedError("The engine stopped before the request was read.", retry_after_s=5) from error
        return await asyncio.wrap_future(work)

    def _checked(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """The inputs, if the engine runs and the request is neither empty nor too large."""
        if self._runtime is None:
            raise _NotStartedError(
                "The engine is not running; start it with `await engine.astart()` or `async with engine:`."
            )
        check_list(inputs, self.engine_args.max_client_batch_size)
        return inputs

    async def _compute(
        self, features: list[Features], call: Call | None, runtime: ModelRuntime | None = None, wanted: Names = DENSE
    ) -> Arrays:
        call = call or Call()
        kept = wanted if self._model.spec.heads and runtime is None else None
        runtime = runtime or self._runtime
        if runtime is None:
            raise _NotStartedError("The engine stopped while the request was being read.", retry_after_s=5)
        computing = runtime.compute(features, call, kept)
        if call.deadline_s is None:
            return await computing
        try:
            return await asyncio.wait_for(computing, max(0.0, call.deadline_s - time.monotonic()))
        except asyncio.TimeoutError as error:
            raise DeadlineExceededError("The time limit passed before the request was computed.") from error
