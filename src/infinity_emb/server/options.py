"""From wire fields to the engine's options (hot path: requests without options share one object)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.server.errors import SchemaError
from infinity_emb.types import (
    DEFAULT_TEXT_OPTIONS,
    EmbeddingDtype,
    EmbedOptions,
    Priority,
    ScoreOptions,
    TextOptions,
)

if TYPE_CHECKING:
    from infinity_emb.engine.async_engine import AsyncEmbeddingEngine
    from infinity_emb.measures import Operation
    from infinity_emb.server.fields import EmbedFields, ScoreFields, TextFields
    from infinity_emb.server.request import Request
    from infinity_emb.types import Call, InputType, Side

_DEFAULT_EMBED_OPTIONS = EmbedOptions()
_INPUT_TYPES: dict[str, InputType] = {
    "query": "query",
    "search_query": "query",
    "retrieval.query": "query",
    "document": "document",
    "passage": "document",
    "search_document": "document",
    "retrieval.passage": "document",
}
# Cohere's words for which Jina's models have another.
_TASK_OF = {"clustering": "separation"}
_TRUNCATE: dict[str, tuple[bool, Side | None]] = {
    "true": (True, None),
    "false": (False, None),
    "none": (False, None),
    "start": (True, "left"),
    "end": (True, "right"),
    "left": (True, "left"),
    "right": (True, "right"),
}
_CLASSES: dict[str, Priority | None] = {
    "auto": None,
    "default": None,
    "scale": None,
    "interactive": Priority.INTERACTIVE,
    "priority": Priority.INTERACTIVE,
    "bulk": Priority.BULK,
    "flex": Priority.BULK,
}
_SIDES: dict[str, Side] = {"left": "left", "right": "right"}
_DTYPES = {"float": EmbeddingDtype.FLOAT32, **{dtype.value: dtype for dtype in EmbeddingDtype}}


class OutputForm(NamedTuple):
    """How vectors are written.

    Attributes:
        base64: As base64 of the raw little-endian numbers, or as a JSON list.
        dtype: Number format.
    """

    base64: bool
    dtype: EmbeddingDtype


def text_options(fields: TextFields, engine: AsyncEmbeddingEngine) -> TextOptions:
    """How the inputs of a request are read.

    Raises:
        SchemaError: A name that is not one of the allowed ones.
    """
    truncate, side = _truncation(fields)
    max_length = fields.truncate_prompt_tokens or fields.max_tokens
    kind, prompt_name = _input_type(fields, engine)
    if truncate and fields.prompt is None and (side, max_length, kind, prompt_name) == (None, None, None, None):
        return DEFAULT_TEXT_OPTIONS
    return TextOptions(
        prompt=fields.prompt,
        prompt_name=prompt_name,
        input_type=kind,
        truncate=truncate,
        truncation_side=side,
        max_length=max_length if max_length is not None and max_length > 0 else None,
    )


def embed_options(fields: EmbedFields, engine: AsyncEmbeddingEngine) -> EmbedOptions:
    """How the vectors of a request are made."""
    text = text_options(fields, engine)
    normalize = fields.normalized if fields.normalize is None else fields.normalize
    dimensions = (fields.dimensions if fields.dimensions is not None else fields.output_dimension) or None
    average_long = _averages(fields.long_text)
    if text is DEFAULT_TEXT_OPTIONS and normalize is None and dimensions is None and not average_long:
        return _DEFAULT_EMBED_OPTIONS
    return EmbedOptions(text, normalize, dimensions, average_long)


def _averages(word: str | None) -> bool:
    if word not in {None, "cut", "average"}:
        raise _not_one_of("long_text", word, ("cut", "average"))
    return word == "average"


def score_options(fields: ScoreFields, engine: AsyncEmbeddingEngine) -> ScoreOptions:
    """How the scores of a request are made."""
    return ScoreOptions(text=text_options(fields, engine), raw_scores=bool(fields.raw_scores))


def call_of(request: Request, fields: TextFields, engine: AsyncEmbeddingEngine, operation: Operation) -> Call:
    """Circumstances of a request: its class if it names one (the body goes before the header), its key, its time limit.

    What is measured of the request is from here on of this model and this operation.

    Raises:
        SchemaError: A class that does not exist.
    """
    request.times.model = engine.card.served_name
    request.times.operation = operation
    call = request.call()
    if fields.priority is not None:
        call.priority = _class_of(fields.priority, "priority")
    elif fields.service_tier is not None:
        call.priority = _class_of(fields.service_tier, "service_tier")
    elif b"x-priority" in request.headers:
        call.priority = _class_of(request.header(b"x-priority"), "x-priority")
    return call


def _class_of(word: str | int, field: str) -> Priority | None:
    """By name, or by number as Cohere and vLLM have it: 0 is the default, lower goes first."""
    number = word if isinstance(word, int) else _number(word)
    if number is not None:
        return None if number == 0 else Priority.INTERACTIVE if number < 0 else Priority.BULK
    name = str(word).lower()
    if name not in _CLASSES:
        raise _not_one_of(field, str(word), tuple(_CLASSES))
    return _CLASSES[name]


def _number(word: str) -> int | None:
    try:
        return int(word)
    except ValueError:
        return None


def output_form(fields: EmbedFields, engine: AsyncEmbeddingEngine) -> OutputForm:
    """How the vectors of a request are written.

    Raises:
        SchemaError: An encoding or number format that is not offered.
    """
    encoding = fields.encoding_format
    if encoding is None and fields.embedding_type:
        encoding = fields.embedding_type if isinstance(fields.embedding_type, str) else fields.embedding_type[0]
    dtype_name = fields.embedding_dtype or fields.output_dtype
    if dtype_name is None and encoding not in {None, "float", "base64"}:
        dtype_name = encoding
        if dtype_name not in _DTYPES:
            raise _not_one_of("encoding_format", encoding, ("float", "base64", *_DTYPES))
    if encoding not in {None, "float", "base64"} and encoding not in _DTYPES:
        raise _not_one_of("encoding_format", encoding, ("float", "base64", *_DTYPES))
    dtype = engine.engine_args.embedding_dtype if dtype_name is None else embedding_dtype(dtype_name)
    return OutputForm(encoding == "base64", dtype)


def embedding_dtype(name: str, field: str = "embedding_dtype") -> EmbeddingDtype:
    """A number format by name.

    Raises:
        SchemaError: There is no such format.
    """
    dtype = _DTYPES.get(name)
    if dtype is None:
        raise _not_one_of(field, name, tuple(_DTYPES))
    return dtype


def _truncation(fields: TextFields) -> tuple[bool, Side | None]:
    truncate: bool = True if fields.truncation is None else fields.truncation
    side: Side | None = None
    given = fields.truncate
    if isinstance(given, bool):
        truncate = given
    elif given is not None:
        row = _TRUNCATE.get(given.lower())
        if row is None:
            raise _not_one_of("truncate", given, ("true", "false", "NONE", "START", "END"))
        truncate, side = row
    side_name = fields.truncation_side or fields.truncation_direction
    if side_name is not None:
        side = _SIDES.get(side_name.lower())
        if side is None:
            raise _not_one_of("truncation_direction", side_name, tuple(_SIDES))
    return truncate, side


def _input_type(fields: TextFields, engine: AsyncEmbeddingEngine) -> tuple[InputType | None, str | None]:
    """Kind of input and prompt name; a word that is neither is ignored, unless the model has adapters or routes.

    Raises:
        SchemaError: There is none for that task.
    """
    word = fields.input_type or fields.task
    routes = str(engine.card.extra.get("routes", ""))
    if word is None or (fields.prompt_name is not None and not routes):
        return None, fields.prompt_name
    kind = _INPUT_TYPES.get(word.lower())
    if fields.prompt_name is not None:
        if kind is None:
            raise _not_one_of("task" if fields.input_type is None else "input_type", word, ("query", "document"))
        return kind, fields.prompt_name
    if kind is None and word in engine.card.prompts:
        return None, word
    if kind is None and _TASK_OF.get(word.lower()) in engine.card.prompts:
        return None, _TASK_OF[word.lower()]
    if kind is None and word in routes.split(", "):
        return None, word
    adapters = str(engine.card.extra.get("adapters", "")) or routes
    if kind is None and adapters:  # without one the model would compute other vectors than were asked for
        raise _not_one_of("task" if fields.input_type is None else "input_type", word, tuple(adapters.split(", ")))
    return kind, None


def _not_one_of(field: str, value: str | None, allowed: tuple[str, ...]) -> SchemaError:
    names = ", ".join(repr(str(name)) for name in dict.fromkeys(allowed))
    return SchemaError(f"{field}: {str(value)[:80]!r} is not known; allowed are {names}.", loc=(field,), kind="enum")
