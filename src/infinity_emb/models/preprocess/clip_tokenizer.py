"""CLIP's tokenizer from the two files in which it was first published; later repositories have a tokenizer.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tokenizers import Tokenizer

VOCABULARY, MERGES = "vocab.json", "merges.txt"
START, END = "<|startoftext|>", "<|endoftext|>"
# English contractions, letters, single digits, and everything else that is no space (Radford et al. 2021).
_WORDS = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def is_there(folder: Path) -> bool:
    """Whether a folder holds both files."""
    return (folder / VOCABULARY).is_file() and (folder / MERGES).is_file()


def load(folder: Path) -> Tokenizer:
    """The tokenizer as transformers makes it of them: lower case, byte pairs that know the end of a word.

    Raises:
        Exception: The tokenizers library cannot read them; it raises no narrower one.
    """
    from tokenizers import (  # noqa: PLC0415 - heavy; not needed to describe a checkpoint
        AddedToken,
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
        processors,
    )

    model = models.BPE.from_file(
        str(folder / VOCABULARY),
        str(folder / MERGES),
        unk_token=END,
        continuing_subword_prefix="",
        end_of_word_suffix="</w>",
    )
    tokenizer = Tokenizer(model)
    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), spaces, normalizers.Lowercase()])
    split = pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in (START, END)])
    ids = tokenizer.get_vocab()
    tokenizer.post_processor = processors.RobertaProcessing(
        (END, ids[END]), (START, ids[START]), trim_offsets=False, add_prefix_space=False
    )
    return tokenizer
