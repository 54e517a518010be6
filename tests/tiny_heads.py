"""Tiny random checkpoints of embedders with heads beside the vector, as FlagEmbedding saves them (BGE-M3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import tiny
import tiny_kinds

if TYPE_CHECKING:
    from pathlib import Path

WIDTH = 48  # of the vectors of single tokens
NAMES = ("sparse_linear", "colbert_linear")
UNUSED = ("<s>", "</s>", "<pad>", "<unk>")


def bge_m3(folder: Path, spelling: str = "pt") -> Path:
    """An XLM-RoBERTa that pools its first token, and two linear layers as `pt`, `safetensors` or `inside` its weights."""
    import torch
    from safetensors.torch import load_file, save_file

    tiny_kinds.plain_model(folder, "xlm-roberta")
    tiny.write_modules(folder, [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])
    hidden = json.loads((folder / "config.json").read_text())["hidden_size"]
    pooling = {"word_embedding_dimension": hidden, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    tiny.write_json(folder / "1_Pooling/config.json", pooling)
    for name, layer in layers(hidden).items():
        if spelling == "pt":
            torch.save(layer, folder / f"{name}.pt")
        elif spelling == "safetensors":
            save_file(layer, folder / f"{name}.safetensors")
        else:
            whole = load_file(folder / "model.safetensors")
            whole |= {f"{name}.{key}": value for key, value in layer.items()}
            save_file(whole, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def layers(hidden: int) -> dict:
    """Name → tensors of a linear layer."""
    import torch

    chance = torch.Generator().manual_seed(5)
    return {
        name: {
            "weight": torch.randn(width, hidden, generator=chance) / hidden**0.5,
            "bias": torch.randn(width, generator=chance) / 4,
        }
        for name, width in zip(NAMES, (1, WIDTH), strict=True)
    }
