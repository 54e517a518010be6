"""Hot path. Turns texts, token ids and pairs of texts into features, with the reference libraries' very token ids."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from infinity_emb.errors import CheckpointError, InvalidInputError
from infinity_emb.models.preprocess import inspection
from infinity_emb.models.preprocess.chunks import Chunked, read_chunks
from infinity_emb.models.preprocess.encoder import Encoder
from infinity_emb.models.preprocess.pieces import cut_into_pieces
from infinity_emb.models.preprocess.prompts import resolve_adapter, resolve_prompt
from infinity_emb.models.preprocess.surviving import Kept, SurvivingEncoder
from infinity_emb.models.preprocess.template import BARE, Window, learn_pair, learn_single
from infinity_emb.models.preprocess.token_ids import read_token_ids
from infinity_emb.models.preprocess.tokenizer_file import load_settings, load_tokenizer, reads_types
from infinity_emb.models.preprocess.words import WordTokenizer
from infinity_emb.models.spec.towers import text_config
from infinity_emb.types import DEFAULT_TEXT_OPTIONS, TextOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infinity_emb.models.features import Features
    from infinity_emb.models.spec.model import ModelSpec
    from infinity_emb.types import TextInput, TokenInfo


class TextPreprocessor:
    """Reads text for one model. Holds nothing that changes, so any number of threads may use it at once.

    Args:
        spec: The checkpoint.

    Raises:
        CheckpointError: Its tokenizer cannot be read, or leaves no room for text.
    """

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        tokenizer = load_tokenizer(spec) if spec.words is None else WordTokenizer(spec.words)
        rows = text_config(spec.config).get("vocab_size")
        self._encoder = Encoder(tokenizer, rows if isinstance(rows, int) and rows > 0 else tokenizer.get_vocab_size())
        self._surviving = SurvivingEncoder(self._encoder)
        typed = reads_types(spec.config, load_settings(spec.folder))
        if isinstance(tokenizer, WordTokenizer):
            self._single = self._pair = BARE
        else:
            self._single = learn_single(tokenizer, typed=typed)
            self._pair = learn_pair(tokenizer, typed=typed)
        self._special_ids = frozenset(
            number for number, token in tokenizer.get_added_tokens_decoder().items() if token.special
        )
        self._counts_prompt = spec.pooling is not None and not spec.pooling.include_prompt
        if spec.max_length <= self._single.specials:
            raise CheckpointError(
                f"the longest input, {spec.max_length} tokens, leaves no room beside the {self._single.specials} "
                "special tokens. Correct max_seq_length (sentence_bert_config.json) or model_max_length.",
                param="max_seq_length",
            )

    def texts(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[Features]:
        """Features of single texts or token ids, in order. Token ids get no prompt.

        Raises:
            InvalidInputError: An item is no text, holds half a character, has an id outside the vocabulary, or is too
                long and `truncate` is off; or the prompt does not exist. The message names the item.
        """
        prompt, adapter = self.resolve_prompt(options), resolve_adapter(self._spec, options)
        window = self._window(options, self._single.specials)
        positions = [index for index, item in enumerate(inputs) if isinstance(item, str)]
        texts = [item for item in inputs if isinstance(item, str)]
        encoded = iter(self._encode(prompt, texts, "input", window, positions))
        prompt_tokens = self._prompt_tokens(prompt, window) if prompt and self._counts_prompt else 0
        features = []
        for index, item in enumerate(inputs):
            if isinstance(item, str):
                kept = next(encoded)
                made = self._single.single(kept.ids, window)
                length = _length(self._single.specials, kept)
                made.prompt_tokens = min(prompt_tokens, made.cost)
            else:
                made = read_token_ids(item, self._single, self._encoder.vocabulary, window, f"input[{index}]")
                length = str(len(item))
            if made.truncated and not options.truncate:
                raise _too_long(f"input[{index}]", length, window.limit)
            made.adapter = adapter
            features.append(made)
        return features

    def pairs(
        self, query: str, documents: Sequence[str], options: TextOptions = DEFAULT_TEXT_OPTIONS
    ) -> list[Features]:
        """Features of one query with each document; a prompt goes before the query, which is encoded once.

        Raises:
            InvalidInputError: As `texts`.
        """
        prompt = self.resolve_prompt(options)
        window = self._window(options, self._pair.specials)
        (first,) = self._encode(prompt, [query], "query", window)
        seconds = self._encode("", documents, "documents", window)
        encoded = [(first, second) for second in seconds]
        asked = prompt + query
        texts = [(asked, document) for document in documents]
        return self._join(encoded, texts, options, "documents")

    def text_pairs(
        self, pairs: Sequence[tuple[str, str]], options: TextOptions = DEFAULT_TEXT_OPTIONS
    ) -> list[Features]:
        """Features of unrelated pairs, in order; a prompt goes before each first text.

        Raises:
            InvalidInputError: As `texts`.
        """
        prompt = self.resolve_prompt(options)
        window = self._window(options, self._pair.specials)
        firsts = self._encode(prompt, [first for first, _ in pairs], "input", window)
        seconds = self._encode("", [second for _, second in pairs], "input", window)
        texts = [(prompt + first, second) for first, second in pairs]
        return self._join(list(zip(firsts, seconds, strict=True)), texts, options, "input")

    def chunks(self, documents: Sequence[Sequence[str]], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[Chunked]:
        """Documents that come in chunks, each read as one text; a prompt goes before it and belongs to no chunk.

        Raises:
            InvalidInputError: As `texts`, or a document is longer than the model reads, or a chunk has no tokens.
        """
        prompt = self.resolve_prompt(options)
        window = self._window(options, self._single.specials)
        made = [
            read_chunks(self._encoder.tokenizer, self._single, prompt, chunks, window, f"input[{index}]")
            for index, chunks in enumerate(documents)
        ]
        for one in made:
            one.features.adapter = resolve_adapter(self._spec, options)
        return made

    def pieces(self, inputs: Sequence[TextInput], options: TextOptions = DEFAULT_TEXT_OPTIONS) -> list[list[Features]]:
        """As `texts`, but a text that is too long becomes several pieces, each behind the prompt.

        Raises:
            InvalidInputError: As `texts`.
        """
        prompt = self.resolve_prompt(options)
        window = self._window(options, self._single.specials)
        prompt_ids = self._encoder.encode([prompt], "prompt")[0] if prompt else []
        made = []
        for index, item in enumerate(inputs):
            (whole,) = self.texts([item], replace(options, truncate=True))
            if not whole.truncated:
                made.append([whole])
                continue
            if not isinstance(item, str):
                raise InvalidInputError(
                    f"input[{index}]: a list of token ids that is too long cannot be averaged; send text.",
                    param="input",
                )
            (ids,) = self._encoder.encode([item], "input", [index])
            cut = cut_into_pieces(ids, prompt_ids, self._single, window, f"input[{index}]")
            prompt_tokens = self._prompt_tokens(prompt, window) if prompt and self._counts_prompt else 0
            for features in cut:
                features.prompt_tokens = min(prompt_tokens, features.cost)
                features.adapter = whole.adapter
            made.append(cut)
        return made

    def resolve_prompt(self, options: TextOptions) -> str:
        """The text put before each input.

        Raises:
            InvalidInputError: The model has no prompt of that name.
        """
        return resolve_prompt(self._spec, options)

    @property
    def ends(self) -> tuple[int, int]:
        """Special tokens before and behind a single text."""
        return len(self._single.head), len(self._single.tail)

    def tokenize(
        self, texts: Sequence[str], *, add_special_tokens: bool = True, prompt_name: str | None = None
    ) -> list[list[TokenInfo]]:
        """Tokens of each text, prompt included, with their places in it; not truncated.

        Raises:
            InvalidInputError: As `texts`.
        """
        prompt = self.resolve_prompt(TextOptions(prompt_name=prompt_name))
        read = [prompt + text for text in texts] if prompt else texts
        return inspection.tokenize(self._encoder, read, add_special_tokens=add_special_tokens)

    def decode(self, ids: Sequence[Sequence[int]], *, skip_special_tokens: bool = True) -> list[str]:
        """Text of each list of token ids.

        Raises:
            InvalidInputError: An id outside the vocabulary.
        """
        return inspection.decode(self._encoder, ids, skip_special_tokens=skip_special_tokens)

    def _encode(
        self, prompt: str, texts: Sequence[str], name: str, window: Window, positions: Sequence[int] | None = None
    ) -> list[Kept]:
        """Token ids of `prompt + text`, special tokens left out, as far as the window can show them."""
        if prompt:
            texts = [prompt + text if isinstance(text, str) else text for text in texts]
        # one more than fits tells that the text was cut
        return self._surviving.encode(texts, window.limit + 1, name, left=window.left, positions=positions)

    def _join(
        self,
        encoded: list[tuple[Kept, Kept]],
        texts: Sequence[tuple[str, str]],
        options: TextOptions,
        name: str,
    ) -> list[Features]:
        window = self._window(options, self._pair.specials)
        odd = (window.limit - self._pair.specials) % 2 == 1
        complete: dict[str, Kept] = {}  # a query that many documents share is read once
        features = []
        for index, (first, second) in enumerate(encoded):
            if odd and not _order_is_known(first, second):
                for text in texts[index]:
                    if text not in complete:
                        complete[text] = Kept(self._encoder.encode([text], name, [index])[0], whole=True)
                first, second = (complete[text] for text in texts[index])  # noqa: PLW2901 - the same, known fully
            made = self._pair.pair(first.ids, second.ids, window)
            if made.truncated and not options.truncate:
                raise _too_long(f"{name}[{index}]", _length(self._pair.specials, first, second), window.limit)
            features.append(made)
        return features

    def _window(self, options: TextOptions, specials: int) -> Window:
        limit = self._spec.max_length
        if options.max_length is not None:
            if options.max_length <= specials:
                raise InvalidInputError(
                    f"max_length {options.max_length} leaves no room for text beside the {specials} special tokens; "
                    f"allowed are {specials + 1} to {limit}.",
                    param="max_length",
                )
            limit = min(limit, options.max_length)
        return Window(limit, (options.truncation_side or self._spec.truncation_side) == "left")

    def _prompt_tokens(self, prompt: str, window: Window) -> int:
        """Leading tokens that are the prompt's, as sentence-transformers counts them: alone, less an end token."""
        (kept,) = self._encode("", [prompt], "prompt", window)
        alone = self._single.single(kept.ids, window).token_ids
        return len(alone) - (len(alone) > 0 and int(alone[-1]) in self._special_ids)


def _order_is_known(first: Kept, second: Kept) -> bool:
    """Whether the tokens in hand tell which text of a pair is longer, which decides who gets an odd token."""
    if first.whole and second.whole:
        return True
    if first.whole:
        return len(first.ids) < len(second.ids)
    return second.whole and len(second.ids) < len(first.ids)


def _length(specials: int, *parts: Kept) -> str:
    """Tokens of an input in words; of one that was cut before it was tokenized only a lower bound is known."""
    known = sum(len(part.ids) for part in parts) + specials
    return str(known) if all(part.whole for part in parts) else f"more than {known - 1}"


def _too_long(where: str, length: str, limit: int) -> InvalidInputError:
    return InvalidInputError(
        f"{where} has {length} tokens, special tokens included; at most {limit} are allowed. "
        "Shorten it, or leave `truncate` on to have it cut.",
        param=where,
    )
