"""Reads late interaction models (ColBERT): a vector a token, queries filled up, tokens left out of the comparison."""

from __future__ import annotations

import string
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.family import FILE, Prompts, read_prompts
from infinity_emb.models.spec.files import ConfigFile, join
from infinity_emb.models.spec.layers import read_dense
from infinity_emb.models.spec.lengths import read_max_length
from infinity_emb.models.spec.model import Activation, DenseSpec, NormalizeSpec
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.parts import make_spec
from infinity_emb.models.spec.scorer import Scorer
from infinity_emb.models.spec.vocabulary import find_token_ids
from infinity_emb.models.spec.weights import all_tensors
from infinity_emb.types import Task

if TYPE_CHECKING:
    from infinity_emb.models.spec.model import ModelSpec, ModuleSpec
    from infinity_emb.models.spec.parts import Parts

COLBERT = "HF_ColBERT"
METADATA = "artifact.metadata"
_QUERY_TOKENS = 32  # of the first ColBERT, and what both libraries assume
_MARKS_OF_PYLATE = (
    "query_length",
    "document_length",
    "query_expansion",
    "do_query_expansion",
    "attend_to_expansion_tokens",
    "attend_to_mask_tokens",
    "query_prefix",
    "document_prefix",
    "skiplist_words",
)


@dataclass(frozen=True, slots=True)
class Expansion:
    """Filling a query up with a token that the model turns into further terms (Khattab and Zaharia 2020).

    Attributes:
        length: Tokens a query has at least.
        fixed: It has exactly so many; a longer one is cut.
        attend: The query's own tokens see the filling.
        token_id: What is filled in.
    """

    length: int
    fixed: bool
    attend: bool
    token_id: int


@dataclass(frozen=True, slots=True)
class LateSpec:
    """How a late interaction model reads.

    Attributes:
        query_length: Longest query in tokens, None for the model's own limit.
        document_length: Longest document likewise.
        expansion: How queries are filled up, or None.
        skip_ids: Tokens without a vector, such as punctuation; ascending.
        skip_tasks: For which kinds of input they have none.
        markers: Texts that the tokenizer must keep in one piece.
        mean: Scores are divided by the number of the query's vectors.
        pool_factor: Documents keep about one vector of so many; 1.0 keeps all.
        protected: Leading vectors that are never merged.
        pooled_unit: Merged vectors are made unit length.
    """

    query_length: int | None
    document_length: int | None
    expansion: Expansion | None
    skip_ids: tuple[int, ...]
    skip_tasks: tuple[str, ...] = ("document",)
    markers: tuple[str, ...] = ()
    mean: bool = False
    pool_factor: float = 1.0
    protected: int = 1
    pooled_unit: bool = False


def read_late(parts: Parts, task: Task | None) -> ModelSpec:
    """Read a late interaction model, as sentence-transformers, PyLate or Stanford's ColBERT saves it.

    Raises:
        CheckpointError: Another task, a module or option that is not computed, or weights that do not fit.
    """
    if task not in {None, Task.MULTI_VECTOR, Task.RERANK}:
        raise CheckpointError(
            f"{FILE}: model_type: a late interaction model gives a vector a token and cannot do the task {task}. "
            "Serve it without --task.",
            param=f"{FILE}:model_type",
        )
    stanford = parts.entries is None
    late, modules, width = _read_stanford(parts) if stanford else _read_modules(parts)
    lengths = [length for length in (late.query_length, late.document_length) if length]
    stated = max(lengths) if late.query_length and late.document_length else None
    length = parts.transformer.max_length
    if stated is not None or (lengths and max(lengths) > length):
        tokenizer = parts.repository.config(join(parts.folder, "tokenizer_config.json"))
        length = read_max_length(parts.transformer.config, tokenizer, max(lengths)).tokens
    prompts = Prompts({"query": late.markers[0], "document": late.markers[1]}, None) if stanford else _prompts(parts)
    chain = Chain(width, width, modules)
    spec = make_spec(parts, Scorer(Task.MULTI_VECTOR, (), Activation.SIGMOID), chain, prompts)
    return replace(spec, late=late, max_length=length, similarity_fn="meanmaxsim" if late.mean else "maxsim")


def _prompts(parts: Parts) -> Prompts:
    """PyLate's prefixes come before the prompt of their kind."""
    texts, default = read_prompts(parts.saved)
    for field, name in (("query_prefix", "query"), ("document_prefix", "document")):
        prefix = parts.saved.text(field)
        if prefix is not None:
            texts[name] = prefix + texts.get(name, "").removeprefix(prefix)
    return Prompts(texts, default)


def _read_modules(parts: Parts) -> tuple[LateSpec, tuple[ModuleSpec, ...], int]:
    """The chain of modules.json: Dense and Normalize on token states, then mask and pooling."""
    width = parts.transformer.hidden_size
    modules: list[ModuleSpec] = []
    mask = ConfigFile(MODULES_FILE, {}, exists=False)
    pooling: dict[str, Any] = {}
    entries = parts.entries or ()
    for entry in entries[1:]:
        name = join(entry.folder, "config.json")
        if entry.kind == "Dense":
            config = parts.repository.config(name, required=True)
            dense = read_dense(parts.repository, entry.folder, _on_tokens(config), width)
            modules.append(dense)
            width = dense.out_features
        elif entry.kind == "Normalize":
            modules.append(NormalizeSpec())
        elif entry.kind == "MultiVectorMask":
            mask = parts.repository.config(name, required=True)
        elif entry.kind == "HierarchicalTokenPooling":
            pooling = _read_token_pooling(parts.repository.config(name, required=True))
        elif entry.kind != "Dropout":
            raise CheckpointError(
                f"{MODULES_FILE}: {entry.kind} in a late interaction model is not supported. Supported: Transformer, "
                "Dense, Normalize, MultiVectorMask, HierarchicalTokenPooling.",
                param=MODULES_FILE,
            )
    if parts.saved.text("model_type") == "ColBERT":  # PyLate did these two inside its model
        modules.append(NormalizeSpec())
        words = _words(parts.saved, "skiplist_words", list(string.punctuation))
    else:
        words = _words(mask, "skiplist_words", [])
    if mask.data.get("keep_only_token_ids"):
        raise mask.error("keep_only_token_ids", "keeping only some tokens is not supported. Supported: null.")
    return _late(parts, words, _words(mask, "skiplist_tasks", ["document"]), pooling), tuple(modules), width


def _late(parts: Parts, words: list[str], skip_tasks: list[str], pooling: dict[str, Any]) -> LateSpec:
    options = parts.transformer.options
    saved = parts.saved
    marked = any(field in saved.data for field in _MARKS_OF_PYLATE)
    expansion = _read_expansion(parts, options if options.data.get("query_expansion") else saved)
    query_length = options.whole("query_length")
    if "query_expansion" not in options.data and "query_expansion" not in saved.data and marked:
        length = query_length or saved.whole("query_length") or _QUERY_TOKENS
        attend = saved.flag("attend_to_expansion_tokens", default=saved.flag("attend_to_mask_tokens", default=False))
        filled = saved.flag("do_query_expansion", default=True)
        expansion = Expansion(length, fixed=True, attend=attend, token_id=_filling(parts, None)) if filled else None
    limit = query_length or saved.whole("query_length")
    if expansion is not None:
        limit = expansion.length if expansion.fixed else None if limit is None else max(limit, expansion.length)
    mean = saved.text("similarity_fn_name") == "meanmaxsim"
    prefixes = tuple(filter(None, (saved.text("query_prefix"), saved.text("document_prefix"))))
    return LateSpec(
        query_length=limit,
        document_length=options.whole("document_length") or saved.whole("document_length"),
        expansion=expansion,
        skip_ids=_token_ids(parts, words),
        skip_tasks=tuple(skip_tasks),
        markers=prefixes,
        mean=mean,
        **pooling,
    )


def _read_expansion(parts: Parts, config: ConfigFile) -> Expansion | None:
    section = config.section("query_expansion")
    if not section.exists:
        return None
    unknown = set(section.data) - {"strategy", "attend", "token", "length"}
    if unknown:
        raise section.error(f"query_expansion.{min(unknown)}", "the field is not known. Remove it.")
    return Expansion(
        length=section.needed_whole("length"),
        fixed=section.choice("strategy", {"fixed": True, "min": False}, default=True),
        attend=section.flag("attend", default=False),
        token_id=_filling(parts, section.text("token")),
    )


def _filling(parts: Parts, token: str | None) -> int:
    """The named token, else the tokenizer's mask, else its end of text."""
    settings = parts.repository.config(join(parts.folder, "tokenizer_config.json"))
    candidates = [token] if token else [_content(settings.data.get(field)) for field in ("mask_token", "eos_token")]
    named = [candidate for candidate in candidates if candidate]
    found = [number for number in find_token_ids(parts.repository, parts.folder, named) if number is not None]
    if not found:
        raise settings.error("mask_token", "queries are filled up with it, but the tokenizer has none.")
    return found[0]


def _content(value: Any) -> str | None:
    """A special token as tokenizer_config.json writes it: a string or an object."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else None


def _token_ids(parts: Parts, words: list[str]) -> tuple[int, ...]:
    """Words that are one token; the others would drop every unknown word."""
    found = find_token_ids(parts.repository, parts.folder, words) if words else []
    return tuple(sorted({number for number in found if number is not None}))


def _words(config: ConfigFile, field: str, default: list[str]) -> list[str]:
    value = config.data.get(field)
    if value is None:
        return default
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise config.error(field, f"{value!r} is no list of words.")
    return words


def _on_tokens(config: ConfigFile) -> ConfigFile:
    """A Dense config whose input is not named reads token states here."""
    return replace(config, data={"module_input_name": "token_embeddings"} | config.data)


def _read_token_pooling(config: ConfigFile) -> dict[str, Any]:
    factor = config.data.get("pool_factor", 1.0)
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or factor < 1:
        raise config.error("pool_factor", f"{factor!r} is no number of at least 1.")
    if _words(config, "tasks", ["document"]) != ["document"]:
        raise config.error("tasks", "merging the vectors of queries is not supported. Supported: document.")
    protected = config.whole("num_protected_tokens", least=0)
    return {
        "pool_factor": float(factor),
        "protected": 1 if protected is None else protected,
        "pooled_unit": config.flag("normalize_embeddings", default=False),
    }


def _read_stanford(parts: Parts) -> tuple[LateSpec, tuple[ModuleSpec, ...], int]:
    """The layout of the first ColBERT: `linear.weight` beside the encoder, options in artifact.metadata."""
    metadata = parts.repository.config(METADATA)
    hidden = parts.transformer.hidden_size
    weights = next((file for file in parts.weights if "linear.weight" in all_tensors((file,))), None)
    if weights is None:
        raise CheckpointError(
            f"{parts.weights[0].name if parts.weights else 'model.safetensors'}: the projection linear.weight is "
            "missing, or the weights are a pickle. Use a revision with safetensors.",
            param="linear.weight",
        )
    shape = all_tensors((weights,))["linear.weight"].shape
    if len(shape) != 2 or shape[1] != hidden:
        raise CheckpointError(f"{weights.name}: linear.weight has shape {list(shape)}, not [any, {hidden}].")
    dense = DenseSpec(hidden, shape[0], bias=False, activation=Activation.IDENTITY, weights=weights, on_tokens=True)
    length = metadata.whole("query_maxlen") or _QUERY_TOKENS
    attend = metadata.flag("attend_to_mask_tokens", default=False)
    words = list(string.punctuation) if metadata.flag("mask_punctuation", default=True) else []
    late = LateSpec(
        query_length=length,
        document_length=metadata.whole("doc_maxlen"),
        expansion=Expansion(length, fixed=True, attend=attend, token_id=_filling(parts, None)),
        skip_ids=_token_ids(parts, words),
        markers=(
            (metadata.text("query_token_id") or "[unused0]") + " ",
            (metadata.text("doc_token_id") or "[unused1]") + " ",
        ),
    )
    return late, (dense, NormalizeSpec()), shape[0]
