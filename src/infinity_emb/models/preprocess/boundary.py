"""Where a text may be cut so that the part in hand gets the very tokens it gets inside the whole text.

The proof, stage by stage of the tokenizers library, for a cut between a letter or digit and a space:

* Added tokens are found in the raw text, leftmost first. None of a usable tokenizer contains a separator, so none lies
  across the cut; spaces that one of them swallows on its left end at the letter.
* Normalizers that are let through change characters one by one or together with marks behind them. A space begins a
  new grapheme and blocks composition, and no letter of `_LETTERS` becomes nothing or a space.
* The pre-tokenizer ends a word at the cut whatever comes before or behind, and the model sees single words.

Anything that is not known to have these properties is not cut at all.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from infinity_emb.models.preprocess.words import WordTokenizer

if TYPE_CHECKING:
    from tokenizers import AddedToken, Tokenizer

# ASCII, Latin, Greek, Cyrillic, Armenian, Hebrew, Arabic, Devanagari, Georgian, kana, ideographs, Hangul: letters in
# every version of Unicode, none of which is dropped, becomes a space, or joins a space behind it.
_IDEOGRAPHS = "\u4e00-\u9fa5"
_LETTERS = (
    "0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0391-\u03a1\u03a3-\u03a9\u03b1-\u03c9\u0400-\u0481\u048a-\u0513"
    "\u0561-\u0586\u05d0-\u05ea\u0621-\u063a\u0641-\u064a\u0905-\u0939\u10d0-\u10f0\u3041-\u3094\u30a1-\u30fa"
    f"{_IDEOGRAPHS}\uac00-\ud7a3"
)
_PUNCTUATION = "\u3001\u3002\uff01\uff0c\uff1b\uff1f"  # ends a run of letters where a language has no spaces
_LOCAL_NORMALIZERS = frozenset({"NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase", "Nmt", "Precompiled"})
_SPACE_PATTERNS = frozenset({" {2,}", r"\s{2,}|[\n\r\t]"})
_SPLITTERS = frozenset({"BertPreTokenizer", "Whitespace", "WhitespaceSplit"})
_MODELS = frozenset({"WordPiece", "BPE", "Unigram", "WordLevel"})
# Regular expressions by which byte-level tokenizers split (those of Qwen 2 and 3, Llama 3, and their relatives): in
# none of them can a letter or digit and what follows from the separators lie in one match.
_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLIT_PATTERNS = frozenset(
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{digits}|{_REST}" for digits in ("", "{1,3}")
)


class Boundaries(NamedTuple):
    """Patterns that match, without length, where a text may be cut.

    Attributes:
        keep_start: For keeping what comes before; None if a start cannot be told apart.
        keep_end: For keeping what comes after; None likewise.
    """

    keep_start: re.Pattern[str] | None
    keep_end: re.Pattern[str] | None


NOWHERE = Boundaries(None, None)
# For a tokenizer of whole words; lower case of a letter hangs together with letters beside it, never across a space.
_BETWEEN_PIECES = Boundaries(re.compile(r"(?<=\S)(?=\s)"), re.compile(r"(?<=\S)(?=\s)"))


def learn_boundaries(tokenizer: Tokenizer | WordTokenizer) -> Boundaries:
    """Where texts for this tokenizer may be cut; `NOWHERE` unless that can be proven."""
    if isinstance(tokenizer, WordTokenizer):
        return _BETWEEN_PIECES
    if type(tokenizer.model).__name__ not in _MODELS or getattr(tokenizer.model, "dropout", None):
        return NOWHERE
    normalizers = parts_of(tokenizer.normalizer, "normalizers")
    splitters = parts_of(tokenizer.pre_tokenizer, "pretokenizers")
    separators, prefixed = _separators(splitters)
    if not separators or not all(map(_is_local, normalizers)):
        return NOWHERE
    if any(step["type"] not in {"NFC", "Lowercase"} for step in normalizers):
        separators = separators.replace(_PUNCTUATION, "")  # it may be turned into something else
    between = _isolates_ideographs(normalizers, splitters)
    forbidden = re.compile(rf"[\s{separators}{_IDEOGRAPHS if between else ''}]")
    added = list(tokenizer.get_added_tokens_decoder().values())
    if any(forbidden.search(written) for token in added for written in spellings(tokenizer, token)):
        return NOWHERE
    changes_start = any(step["type"] == "Prepend" or step.get("strip_left") for step in normalizers) or any(
        token.rstrip and re.search(f"[{_LETTERS}]$", token.content) for token in added
    )
    behind = " " if prefixed else separators
    return Boundaries(
        _pattern(separators, between=between), None if changes_start else _pattern(behind, between=between)
    )


def _pattern(separators: str, *, between: bool) -> re.Pattern[str]:
    pattern = f"(?<=[{_LETTERS}])(?=[{separators}])"
    return re.compile(f"{pattern}|(?<=[{_IDEOGRAPHS}])(?=[{_IDEOGRAPHS}])" if between else pattern)


def spellings(tokenizer: Tokenizer, token: AddedToken) -> tuple[str, ...]:
    """How an added token may stand in the text that is searched for it."""
    if token.normalized and tokenizer.normalizer is not None:
        return token.content, tokenizer.normalizer.normalize_str(token.content)
    return (token.content,)


def parts_of(component: Any, key: str) -> list[dict[str, Any]]:
    """A normalizer or pre-tokenizer as the list of its steps, each as tokenizer.json writes it."""
    if component is None:
        return []
    waiting, parts = [json.loads(component.__getstate__())], []
    while waiting:
        step = waiting.pop(0)
        if step["type"] == "Sequence":
            waiting[:0] = step[key]
        else:
            parts.append(step)
    return parts


def _is_local(step: dict[str, Any]) -> bool:
    kind = step["type"]
    if kind == "Replace":
        pattern, content = step["pattern"], step["content"]
        if "Regex" in pattern:
            return pattern["Regex"] in _SPACE_PATTERNS and content in {" ", "\u2581"}
        return not re.search(r"[\s\w]", pattern["String"]) and bool(re.fullmatch(r"[!-/:-@]", content))
    return kind in _LOCAL_NORMALIZERS or kind in {"BertNormalizer", "Strip", "Prepend"}


def _separators(splitters: list[dict[str, Any]]) -> tuple[str, bool]:
    """Characters before which a word always ends, empty if unknown; and whether a start without a space gets one."""
    for step in splitters:
        kind = step["type"]
        if kind in {"Digits", "Punctuation"}:  # they look at single characters
            continue
        if kind in _SPLITTERS:
            return " \n", False
        if kind == "Metaspace" and step.get("split", True):
            return " ", True
        if kind == "ByteLevel" and step.get("use_regex", True):
            return " \n" + _PUNCTUATION, bool(step["add_prefix_space"])
        if kind == "Split" and not step["invert"] and step["behavior"] in {"Isolated", "Removed"}:
            known = step["pattern"].get("Regex") in _SPLIT_PATTERNS
            return (" \n" + _PUNCTUATION if known else ""), any(rest.get("add_prefix_space") for rest in splitters)
        break
    return "", False


def _isolates_ideographs(normalizers: list[dict[str, Any]], splitters: list[dict[str, Any]]) -> bool:
    """BERT puts spaces around every ideograph, so that each is a word."""
    return (
        len(normalizers) == 1
        and bool(normalizers[0].get("handle_chinese_chars"))
        and bool(splitters)
        and splitters[0]["type"] in _SPLITTERS
    )
