"""Reads models of whole words: WordEmbeddings (a table of word vectors) and BoW, which begin a chain of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from infinity_emb.errors import CheckpointError
from infinity_emb.models.spec.bag import read_bag
from infinity_emb.models.spec.chain import Chain
from infinity_emb.models.spec.family import EMBEDDER, FILE, check_embeds, read_prompts
from infinity_emb.models.spec.files import ConfigFile, join
from infinity_emb.models.spec.model import Activation, PoolingMode, PoolingSpec
from infinity_emb.models.spec.modules import BAG, WORDS, extend_chain, read_entries
from infinity_emb.models.spec.modules import FILE as MODULES_FILE
from infinity_emb.models.spec.parts import Parts, make_spec
from infinity_emb.models.spec.scorer import Scorer
from infinity_emb.models.spec.static import LONGEST_TOKENS
from infinity_emb.models.spec.token_weights import read_vocabulary
from infinity_emb.models.spec.transformer import Transformer
from infinity_emb.models.spec.weights import find_weights, tensor_shapes
from infinity_emb.types import PoolingMethod, Task

if TYPE_CHECKING:
    from pathlib import Path

    from infinity_emb.models.spec.files import Repository
    from infinity_emb.models.spec.model import ModelSpec, ModuleSpec

TABLE = "emb_layer.weight"
# The names under which graphs are built.
WORD_TYPE, BAG_TYPE = "words", "bag"
CONFIG_FILE, SPLIT_FILE = "wordembedding_config.json", "whitespacetokenizer_config.json"
SPLITTER = "WhitespaceTokenizer"


@dataclass(frozen=True, slots=True)
class WordSplit:
    """How texts become words: split at white space; a word counts as it is, without punctuation, or in lower case.

    Attributes:
        file: JSON with `vocab`, and maybe `stop_words` and `do_lower_case`.
        unique: Words that the vocabulary lists twice are counted once.
    """

    file: Path
    unique: bool = False


class _Reading(NamedTuple):
    """What the first module says.

    Attributes:
        model_type: Name of the graph.
        rows: Words.
        width: Of a token state.
        longest: Words that are read of a text.
        weights: The table's files.
        split: How texts become words.
        chain: What the first module begins.
    """

    model_type: str
    rows: int
    width: int
    longest: int
    weights: tuple[Path, ...]
    split: WordSplit
    chain: Chain


def read_words(repository: Repository, task: Task | None, pooling: PoolingMethod) -> ModelSpec | None:
    """The specification of a model of words; None if the repository holds something else.

    Raises:
        CheckpointError: A file is missing or broken, or something else than vectors is asked for.
    """
    entries = read_entries(repository) if repository.checkpoint.path.is_dir() else None
    if entries is None or entries[0].kind not in {WORDS, BAG}:
        return None
    saved = repository.config(FILE)
    check_embeds(saved, task, entries[0].kind, MODULES_FILE)
    folder = entries[0].folder
    reading = (_read_table if entries[0].kind == WORDS else _read_bag)(repository, folder)
    chain = reading.chain
    for entry in entries[1:]:
        chain = extend_chain(repository, chain, entry, pooling)
    if not chain.vector_width:
        raise CheckpointError(f"{MODULES_FILE}: no Pooling module, so there is no vector. Add one.", param=MODULES_FILE)
    chain = replace(chain, modules=tuple(map(_as_words_do, chain.modules)))
    note = f"the repository reads up to {reading.longest} words; they are cut at {LONGEST_TOKENS}"
    transformer = Transformer(
        config=ConfigFile(
            "config.json",
            {"model_type": reading.model_type, "hidden_size": reading.width, "vocab_size": reading.rows},
        ),
        model_type=reading.model_type,
        architecture=entries[0].kind,
        hidden_size=reading.width,
        max_length=min(reading.longest, LONGEST_TOKENS),
        do_lower_case=False,
        padding_side="right",
        truncation_side="right",
        purpose=None,
        options=ConfigFile("", {}, exists=False),
        notes=(note,) if reading.longest > LONGEST_TOKENS else (),
    )
    parts = Parts(repository, saved, EMBEDDER, entries, transformer, folder, reading.weights)
    spec = make_spec(parts, Scorer(Task.EMBED, (), Activation.IDENTITY), chain, read_prompts(saved))
    return replace(spec, words=reading.split)


def _as_words_do(module: ModuleSpec) -> ModuleSpec:
    """The reference gives no state of a first token here, and does not know which words are the prompt's."""
    if not isinstance(module, PoolingSpec):
        return module
    if PoolingMode.CLS in module.modes:
        raise CheckpointError(
            f"{MODULES_FILE}: Pooling: the mode cls has no meaning behind {WORDS}, which has no such token. "
            "Use another mode, such as mean.",
            param=MODULES_FILE,
        )
    return replace(module, include_prompt=True)


def _read_table(repository: Repository, folder: str) -> _Reading:
    config = repository.config(join(folder, CONFIG_FILE), required=True)
    splitter = config.text("tokenizer_class") or ""
    if not splitter.startswith("sentence_transformers.") or splitter.rpartition(".")[2] != SPLITTER:
        raise config.error("tokenizer_class", f"{splitter!r} is not supported. Supported: {SPLITTER}.")
    words = read_vocabulary(repository.config(join(folder, SPLIT_FILE), required=True))
    weights = find_weights(repository, folder)
    shown = join(folder, "model.safetensors")
    shape = tensor_shapes(weights).get(TABLE, ())
    if len(shape) != 2 or shape[0] < len(words):
        raise CheckpointError(
            f"{shown}: {TABLE!r} has the shape {list(shape)}, but must hold a row for each of {len(words)} words "
            f"({SPLIT_FILE}). The files do not belong together; download them again.",
            param=shown,
        )
    longest = config.whole("max_seq_length") or LONGEST_TOKENS
    split = WordSplit(repository.path(folder, SPLIT_FILE))
    return _Reading(WORD_TYPE, *shape, longest, weights, split, Chain(shape[1], rows=shape[0], worded=True))


def _read_bag(repository: Repository, folder: str) -> _Reading:
    name = join(folder, "config.json")
    bag = read_bag(repository.config(name, required=True))
    count = len(bag.weights)
    split = WordSplit(repository.path(name), unique=True)
    chain = Chain(count, count, (bag,), worded=True)
    return _Reading(BAG_TYPE, count, count, LONGEST_TOKENS, (), split, chain)
