"""Hand-made tokenizers for tiny checkpoints: WordPiece, byte-level BPE and Unigram over a small, mixed vocabulary."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
the quick brown fox jumps over the lazy dog . what is the capital of peru ? lima is the capital of peru .
tea is hot and coffee is hotter ; peru grows potatoes , maize and cotton . how many people live in berlin ?
berlin had a population of 3 520 031 in 2019 ! search embeddings rank documents classify texts vectors models
café naïve übermäßig straße señor groß привет мир как дела こんにちは 世界 你好 人工智能 한국어 문장 مرحبا नमस्ते
alpha beta gamma omega psi chi filler word words answer text padding query document passage green blue red
"""
CORPUS = TEXT.split()
SPECIALS = {
    "bert": ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    "roberta": ("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
    "mpnet": ("<s>", "<pad>", "</s>", "[UNK]", "<mask>"),
    "albert": ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"),
    "deberta_v2": ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"),
}
CLASSES = {
    "bert": "BertTokenizer",
    "distilbert": "DistilBertTokenizer",
    "electra": "ElectraTokenizer",
    "mpnet": "MPNetTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm_roberta": "XLMRobertaTokenizer",
    "albert": "AlbertTokenizer",
    "deberta_v2": "DebertaV2Tokenizer",
    "modernbert": "PreTrainedTokenizerFast",
}


def write(folder: Path, kind: str, max_length: int) -> dict:
    """Write tokenizer.json and tokenizer_config.json; returns the fields of config.json that follow from them."""
    base = {"distilbert": "bert", "electra": "bert", "modernbert": "bert", "xlm_roberta": "roberta"}.get(kind, kind)
    specials = SPECIALS[base]
    unk = next(token for token in specials if "unk" in token.lower())
    make = {"roberta": _byte_level, "modernbert": _byte_level, "xlm_roberta": _unigram, "albert": _unigram}
    make["deberta_v2"] = _unigram
    tokenizer = make.get(kind, _word_piece)(specials, unk, kind)
    begin, end = ("<s>", "</s>") if "<s>" in specials else ("[CLS]", "[SEP]")
    tokenizer.post_processor = _template(tokenizer, kind, begin, end)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in specials])
    # A stored limit and padding, as published files have them: they must not leak into results.
    tokenizer.enable_truncation(16)
    tokenizer.enable_padding(length=16, pad_id=tokenizer.token_to_id(_pad(specials)), pad_token=_pad(specials))
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": CLASSES[kind],
        "model_max_length": max_length,
        "cls_token": begin,
        "sep_token": end,
        "unk_token": unk,
        "pad_token": _pad(specials),
        "mask_token": next(token for token in specials if "mask" in token.lower()),
    }
    if kind in {"roberta", "xlm_roberta", "mpnet"}:
        settings |= {"bos_token": begin, "eos_token": end}
    if kind == "modernbert":
        settings["model_input_names"] = ["input_ids", "attention_mask"]
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    ids = {"pad_token_id": tokenizer.token_to_id(_pad(specials)), "vocab_size": tokenizer.get_vocab_size()}
    for name, token in (("bos", begin), ("eos", end), ("cls", begin), ("sep", end)):
        ids[f"{name}_token_id"] = tokenizer.token_to_id(token)
    return ids


def _pad(specials: tuple[str, ...]) -> str:
    return next(token for token in specials if "pad" in token.lower())


def _template(tokenizer: Tokenizer, kind: str, begin: str, end: str):
    ends = [(token, tokenizer.token_to_id(token)) for token in (begin, end)]
    if kind == "roberta":
        return processors.RobertaProcessing(ends[1], ends[0])
    if kind in {"xlm_roberta", "mpnet"}:
        pair = f"{begin} $A {end} {end} $B {end}"
    else:
        pair = f"{begin}:0 $A:0 {end}:0 $B:1 {end}:1"
    return processors.TemplateProcessing(single=f"{begin} $A {end}", pair=pair, special_tokens=ends)


def _word_piece(specials: tuple[str, ...], unk: str, kind: str) -> Tokenizer:
    del kind
    normalizer = normalizers.BertNormalizer(lowercase=True)
    splitter = pre_tokenizers.BertPreTokenizer()
    words = [word for line in CORPUS for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(line))]
    letters = sorted(set("".join(words)) | set("abcdefghijklmnopqrstuvwxyz0123456789"))
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *_frequent(words)]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=unk))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, splitter
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _byte_level(specials: tuple[str, ...], unk: str, kind: str) -> Tokenizer:
    del unk
    tokenizer = Tokenizer(models.BPE())
    if kind == "modernbert":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(CORPUS)], trainer)
    return tokenizer


def _unigram(specials: tuple[str, ...], unk: str, kind: str) -> Tokenizer:
    lower = kind == "albert"
    words = [word.lower() if lower else word for word in CORPUS]
    letters = sorted(set("".join(words)) | set("abcdefghijklmnopqrstuvwxyz0123456789"))
    pieces = {"▁": -4.0} | dict.fromkeys(letters, -6.0) | dict.fromkeys((f"▁{word}" for word in _frequent(words)), -5.0)
    vocabulary = [(token, 0.0) for token in specials] + list(pieces.items())
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=specials.index(unk), byte_fallback=False))
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    if kind == "deberta_v2":
        steps = [normalizers.Replace(_spaces(), " "), normalizers.NFC(), normalizers.Strip(left=False, right=True)]
        tokenizer.normalizer = normalizers.Sequence(steps)
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([metaspace])
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    if lower:
        steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD()]
        tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.StripAccents(), normalizers.Lowercase()])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    return tokenizer


def _spaces():
    from tokenizers import Regex

    return Regex(r"\s{2,}|[\n\r\t]")


def _frequent(words: list[str]) -> list[str]:
    return [word for word, _ in sorted(Counter(words).items(), key=lambda item: (-item[1], item[0]))]
