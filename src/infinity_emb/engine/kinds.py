"""Hot path of what is no single vector a text: sparse weights, a vector a token, late interaction, late chunking."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from infinity_emb.engine.chunking import average_pieces, check_late_chunking, embed_spans
from infinity_emb.engine.heads import SeveralResult, sources_of, weigh_tokens
from infinity_emb.engine.late import finish_tokens, score_late
from infinity_emb.engine.media_face import MediaFace
from infinity_emb.engine.muvera import encode_fixed
from infinity_emb.engine.token_states import TokenStates, token_view
from infinity_emb.engine.usage import usage_of
from infinity_emb.engine.vectors import check_dimensions, finish_vectors, sigmoid
from infinity_emb.engine.words import weigh_words
from infinity_emb.errors import BackendError, CapabilityError, InputTooLargeError, InvalidInputError
from infinity_emb.models.preprocess.late import asks
from infinity_emb.models.preprocess.text import TextPreprocessor
from infinity_emb.models.safetensors_file import load_tensor
from infinity_emb.types import (
    ChunkResult,
    EmbedOptions,
    EmbedResult,
    MultiVectorResult,
    ScoreOptions,
    ScoreResult,
    SparseResult,
    Task,
    TextOptions,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from infinity_emb.engine.loader import LoadedModel
    from infinity_emb.engine.routes import RouteEngines
    from infinity_emb.models.features import Features
    from infinity_emb.types import Call, FloatArray, TextInput, TokenInfo


Made = TypeVar("Made")

# What a model that is made for a task can do.
VERBS = {
    Task.EMBED: "embed",
    Task.RERANK: "rerank",
    Task.CLASSIFY: "classify",
    Task.SPARSE: "give sparse vectors",
    Task.MULTI_VECTOR: "give a vector a token",
}


class KindsFace(MediaFace):
    """The methods of `AsyncEmbeddingEngine` for models and results of other kinds."""

    _model: LoadedModel
    _token_states: TokenStates | None = None
    _query_weights: FloatArray | None = None
    _routes: RouteEngines

    @abstractmethod
    async def _preprocess(
        self, inputs: Sequence[Any], make: Callable[[], list[Features]], call: Call | None
    ) -> list[Features]: ...

    @abstractmethod
    def _require(self, task: Task) -> None: ...

    async def sparse_result(
        self,
        inputs: Sequence[TextInput],
        options: EmbedOptions = EmbedOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> SparseResult:
        """Weights of the words of the vocabulary for texts or token ids.

        Raises: as `embed_result`.
        """
        self._require(Task.SPARSE)
        if self._model.spec.heads is not None:
            return _made((await self.several_result(inputs, ["sparse"], options, call)).sparse)
        preprocessor, sparse = self._model.preprocessor, self._model.spec.sparse
        features = await self._preprocess(inputs, lambda: preprocessor.texts(inputs, options.text), call)
        if sparse is not None and sparse.query_weights is not None and asks(options.text):
            if self._query_weights is None:
                self._query_weights = load_tensor(sparse.query_weights, "weight").astype(np.float32)
            words, weights = weigh_words(features, self._query_weights, preprocessor, sparse.most)
            return SparseResult(words, weights, usage_of(features))
        outputs = await self._compute(features, call)
        return SparseResult(list(outputs["sparse_index"]), list(outputs["sparse"]), usage_of(features))

    async def multi_vector_result(
        self,
        inputs: Sequence[TextInput],
        options: EmbedOptions = EmbedOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> MultiVectorResult:
        """A vector a token `[n, dim]` for texts or token ids: of a late interaction model, or an embedder's states.

        An embedder's states are those before pooling; `normalize` makes each of them unit length. A model with a head
        for them (BGE-M3) gives what that makes of all tokens but the first.

        Raises: as `embed_result`.
        """
        other, options = self._routes.choose(options)
        if other is not None:
            return await other.multi_vector_result(inputs, options, call)
        spec = self._model.spec
        if spec.heads is not None and spec.heads.multi_vector is not None:
            return _made((await self.several_result(inputs, ["multi_vector"], options, call)).multi_vector)
        if spec.late is None:
            self._require(Task.EMBED)
        if spec.media or (spec.late is None and spec.pooling is None):
            raise CapabilityError(
                f"The model {self.card.served_name!r} gives one vector a text; it has no vectors of single tokens.",
                param="model",
            )
        features = await self._preprocess(inputs, lambda: self._model.preprocessor.texts(inputs, options.text), call)
        tokens = await self._tokens(features, call)
        vectors = finish_tokens(tokens, features, spec, options.text)
        if options.dimensions:
            check_dimensions(spec if spec.late else token_view(spec), options.dimensions)
            vectors = [one[:, : options.dimensions] for one in vectors]
        if options.normalize or (options.dimensions and spec.late is not None and spec.normalized):
            vectors = [one / np.maximum(np.linalg.norm(one, axis=1, keepdims=True), 1e-12) for one in vectors]
        return MultiVectorResult(vectors, usage_of(features))

    @property
    def gives_together(self) -> bool:
        """Whether several kinds of results come from one forward pass."""
        return self._model.spec.heads is not None

    async def several_result(
        self,
        inputs: Sequence[TextInput],
        kinds: Sequence[str],
        options: EmbedOptions = EmbedOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> SeveralResult:
        """Some of `dense`, `sparse`, `multi_vector` and `muvera` from one forward pass, of a model with such heads.

        Raises: as `embed_result`.
        """
        spec, heads = self._model.spec, self._model.spec.heads
        for kind in kinds:
            self._require(Task.MULTI_VECTOR if kind == "muvera" else Task.EMBED if kind == "dense" else Task(kind))
        if heads is None:
            raise CapabilityError(f"The model {self.card.served_name!r} has no heads beside its vector.", param="model")
        if "dense" in kinds or heads.multi_vector is None:
            check_dimensions(spec, options.dimensions)
        if "multi_vector" in kinds and heads.multi_vector is not None:
            check_dimensions(replace(spec, dim=heads.multi_vector.width), options.dimensions)
        features = await self._preprocess(inputs, lambda: self._model.preprocessor.texts(inputs, options.text), call)
        outputs = await self._compute(features, call, wanted=sources_of(kinds))
        usage, made = usage_of(features), SeveralResult()
        if "dense" in kinds:
            made.dense = EmbedResult(finish_vectors(outputs, spec, options), usage)
        if "sparse" in kinds:
            weights = zip(features, outputs["token_weights"], strict=True)
            words = [weigh_tokens(item.token_ids, row, heads.unused_ids) for item, row in weights]
            made.sparse = SparseResult([ids for ids, _ in words], [heavy for _, heavy in words], usage)
        vectors = [rows[1:] for rows in outputs.get("tokens", ())]  # the first stands for the whole text
        if "multi_vector" in kinds:
            made.multi_vector = MultiVectorResult([_cut(one, options.dimensions) for one in vectors], usage)
        if "muvera" in kinds:
            is_query = asks(options.text)
            made.muvera = EmbedResult(np.stack([encode_fixed(one, is_query=is_query) for one in vectors]), usage)
        return made

    async def fixed_result(
        self,
        inputs: Sequence[TextInput],
        options: EmbedOptions = EmbedOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> EmbedResult:
        """MUVERA encodings `[items, muvera.DIM]` of a late interaction model's matrices; see `engine.muvera`.

        Raises: as `embed_result`.
        """
        self._require(Task.MULTI_VECTOR)
        result = await self.multi_vector_result(inputs, replace(options, dimensions=None), call)
        is_query = asks(options.text)
        vectors = np.stack([encode_fixed(matrix, is_query=is_query) for matrix in result.vectors])
        return EmbedResult(vectors, result.usage)

    async def chunks_result(
        self,
        documents: Sequence[Sequence[str]],
        options: EmbedOptions = EmbedOptions(),  # noqa: B008 - frozen
        call: Call | None = None,
    ) -> ChunkResult:
        """Late chunking: a vector for each chunk, from token states that have seen the whole document.

        Günther et al. 2024. The chunks of a document are joined by a space where none is; a chunk's vector is what the
        model makes of the states of its own tokens.

        Raises:
            CapabilityError: The model does not pool by the mean.
            RequestError: A document is longer than the model reads, or a chunk has no token.
        """
        self._require(Task.EMBED)
        other, options = self._routes.choose(options)
        if other is not None:
            return await other.chunks_result(documents, options, call)
        spec, preprocessor = self._model.spec, self._model.preprocessor
        check_dimensions(spec, options.dimensions)
        check_late_chunking(spec, self.card.served_name)
        if not isinstance(preprocessor, TextPreprocessor):
            raise CapabilityError("The dummy engine has no tokens to make chunks of.", param="late_chunking")
        reader = preprocessor
        spans: list[list[tuple[int, int]]] = []

        def read() -> list[Features]:
            made = reader.chunks(documents, options.text)
            spans.extend(one.spans for one in made)
            return [one.features for one in made]

        features = await self._preprocess(documents, read, call)
        tokens = await self._tokens(features, call)
        outputs = embed_spans(spec, tokens, spans)
        return ChunkResult(finish_vectors(outputs, spec, options), spans, usage_of(features))

    def tokenize(
        self, texts: Sequence[str], *, add_special_tokens: bool = True, prompt_name: str | None = None
    ) -> list[list[TokenInfo]]:
        """Tokens of each text with their places in bytes, not truncated."""
        other, read = self._routes.choose_text(TextOptions(prompt_name=prompt_name))
        preprocessor = self._model.preprocessor if other is None else other._model.preprocessor  # noqa: SLF001 - own
        return preprocessor.tokenize(texts, add_special_tokens=add_special_tokens, prompt_name=read.prompt_name)

    async def _embed_long(self, inputs: Sequence[TextInput], options: EmbedOptions, call: Call | None) -> EmbedResult:
        """Vectors of texts of any length: the mean over the pieces that fit, weighted by their tokens."""
        spec, preprocessor = self._model.spec, self._model.preprocessor
        if not isinstance(preprocessor, TextPreprocessor):
            raise CapabilityError("The dummy engine averages nothing.", param="long_text")
        reader, counts = preprocessor, list[int]()
        limit = self.engine_args.max_client_batch_size

        def read() -> list[Features]:
            made = reader.pieces(inputs, options.text)
            counts.extend(map(len, made))
            if sum(counts) > limit:
                raise InputTooLargeError(
                    f"The texts take {sum(counts)} pieces; at most {limit} are allowed in one request. Send fewer or "
                    "shorter texts, or raise --max-client-batch-size.",
                    param="input",
                )
            return [piece for pieces in made for piece in pieces]

        features = await self._preprocess(inputs, read, call)
        plain = replace(options, normalize=None, dimensions=spec.dim)
        vectors = finish_vectors(await self._compute(features, call), spec, plain)
        means = average_pieces(vectors, [item.cost for item in features], counts, unit=spec.normalized)
        averaged = tuple(index for index, count in enumerate(counts) if count > 1)
        tokens = sum(item.cost for item in features)
        return EmbedResult(finish_vectors(means, spec, options), Usage(tokens, averaged=averaged))

    async def _rerank_late(
        self, query: str, documents: Sequence[str], options: ScoreOptions, call: Call | None
    ) -> ScoreResult:
        """MaxSim of the query with each document; made 0..1 unless raw scores are asked for."""
        spec, preprocessor = self._model.spec, self._model.preprocessor
        asking = replace(options.text, input_type="query")
        answering = replace(options.text, input_type="document", prompt=None, prompt_name=None)

        def read() -> list[Features]:
            return [*preprocessor.texts([query], asking), *preprocessor.texts(documents, answering)]

        features = await self._preprocess(documents, read, call)
        tokens = await self._tokens(features, call)
        (asked,) = finish_tokens(tokens[:1], features[:1], spec, asking)
        answers = finish_tokens(tokens[1:], features[1:], spec, answering)
        mean = spec.late is not None and spec.late.mean
        scores = score_late(asked, answers, mean=mean or not options.raw_scores)
        if not options.raw_scores:
            scores = (scores + 1.0) / 2.0 if spec.normalized else sigmoid(scores)
        usage = usage_of(features)
        return ScoreResult(scores, Usage(usage.prompt_tokens, tuple(n - 1 for n in usage.truncated if n)))

    def _label_features(self, inputs: Sequence[TextInput | tuple[str, str]], options: ScoreOptions) -> list[Features]:
        """Texts and pairs may be mixed; each keeps its place."""
        preprocessor = self._model.preprocessor
        pairs = [item for item in inputs if isinstance(item, tuple)]
        if self._model.spec.judge is not None and len(pairs) < len(inputs):
            raise InvalidInputError(
                "This model scores a query with a document and nothing else; send pairs, or use /rerank.", param="input"
            )
        if not pairs:
            return preprocessor.texts([item for item in inputs if not isinstance(item, tuple)], options.text)
        texts = iter(preprocessor.texts([item for item in inputs if not isinstance(item, tuple)], options.text))
        paired = iter(preprocessor.text_pairs(pairs, options.text))
        return [next(paired) if isinstance(item, tuple) else next(texts) for item in inputs]

    async def _tokens(self, features: list[Features], call: Call | None) -> list[FloatArray]:
        """A matrix `[tokens, dim]` for each input, special tokens included."""
        if self._model.spec.gives_tokens:
            return list((await self._compute(features, call))["tokens"])
        if not isinstance(self._model.preprocessor, TextPreprocessor):
            raise CapabilityError("The dummy engine gives no vectors of single tokens.", param="model")
        if self._token_states is None:
            self._token_states = TokenStates(self.engine_args, self._model)
        runtime = await self._token_states.runtime()
        return list((await self._compute(features, call, runtime))["tokens"])


def _made(result: Made | None) -> Made:
    if result is None:
        raise BackendError("a result that was asked for was not made; this is a bug.")
    return result


def _cut(vectors: FloatArray, dimensions: int | None) -> FloatArray:
    """The first numbers of each vector, made unit length again."""
    if not dimensions or dimensions == vectors.shape[1]:
        return vectors
    kept = vectors[:, :dimensions]
    unit: FloatArray = kept / np.maximum(np.linalg.norm(kept, axis=1, keepdims=True), 1e-12)
    return unit
