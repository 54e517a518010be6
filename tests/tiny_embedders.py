"""Tiny embedders of every architecture that a graph is built for and transformers knows, tokenizer included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import tiny
import tiny_kinds
import tiny_more
import tiny_tokenizers

if TYPE_CHECKING:
    from pathlib import Path

LONGEST = 64
# built by `tiny`, without torch
PLAIN = {
    "albert": "albert",
    "bert": "bert",
    "deberta-v2": "deberta_v2",
    "distilbert": "distilbert",
    "electra": "electra",
    "modernbert": "modernbert",
    "mpnet": "mpnet",
    "roberta": "roberta",
    "xlm-roberta": "xlm_roberta",
}
# written by transformers → tokenizer
WRITTEN = {
    "eurobert": "modernbert",
    "gemma": "roberta",
    "gemma3_text": "roberta",
    "gte": "bert",
    "llama": "roberta",
    "mistral": "roberta",
    "mt5": "xlm_roberta",
    "nomic_bert": "bert",
    "qwen2": "modernbert",
    "qwen3": "modernbert",
    "t5": "xlm_roberta",
    "umt5": "xlm_roberta",
}
MODEL_TYPES = (*PLAIN, "camembert", *WRITTEN)
# Their positions count padding on the left, so a reference that pads there is right only for texts of one length.
COUNTS_PADDING = frozenset({"albert", "bert", "distilbert", "electra"})


def embedder(model_type: str, folder: Path, **choices) -> Path:
    """A checkpoint; `choices` as in `tiny.tiny`."""
    if model_type in PLAIN:
        return tiny.tiny(PLAIN[model_type], folder, **choices)
    if model_type == "camembert":
        tiny.tiny("roberta", folder, **choices)
        tiny.edit_json(folder / "config.json", model_type="camembert", architectures=["CamembertModel"])
        return folder
    # the modules and the tokenizer come from `tiny`, config and weights from transformers
    tiny.tiny("bert", folder, **choices)
    for old in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        (folder / old).unlink()
    tokens = tiny_tokenizers.write(folder, WRITTEN[model_type], LONGEST)
    # the plain class: those of the families would put their own template in the place of the one written
    tiny.edit_json(folder / "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    if model_type == "qwen2":
        _split_as_qwen(folder / "tokenizer.json")
    tiny_more.save(folder, model_type, tokens)
    return folder


def _split_as_qwen(path: Path) -> None:
    """transformers takes this family's own splitter whatever the file says, so the file must say the same."""
    parts = [
        {"type": "Split", "pattern": {"Regex": tiny_kinds.WORDS}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    ]
    tiny.edit_json(path, pre_tokenizer={"type": "Sequence", "pretokenizers": parts})


def pad(folder: Path, side: str) -> None:
    """Let the tokenizer pad on this side."""
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"padding_side": side}), encoding="utf-8")
