"""Builds a tiny sparse encoder (SPLADE) out of a tiny BERT, without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import load_file

import tiny
from tiny_architectures import HIDDEN

if TYPE_CHECKING:
    from pathlib import Path

ROOT = "sentence_transformers.sparse_encoder.models"


def tiny_splade(folder: Path) -> Path:
    """A masked language model of one more layer, and the modules that make its logits weights of words."""
    tiny.tiny_bert(folder, modules=False, seed=3)
    tensors = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    words = tensors["bert.embeddings.word_embeddings.weight"].shape[0]
    random = np.random.default_rng(3)
    head = "cls.predictions"
    tensors |= {
        f"{head}.transform.dense.weight": random.normal(0, HIDDEN**-0.5, (HIDDEN, HIDDEN)),
        f"{head}.transform.dense.bias": np.zeros(HIDDEN),
        f"{head}.transform.LayerNorm.weight": np.ones(HIDDEN),
        f"{head}.transform.LayerNorm.bias": np.zeros(HIDDEN),
        f"{head}.bias": random.normal(-1, 1, words),
    }
    tiny.save_tensors(folder, tensors, "float32")
    tiny.edit_json(folder / "config.json", architectures=["BertForMaskedLM"])
    tiny.write_modules(folder, [("", f"{ROOT}.MLMTransformer"), ("1_SpladePooling", f"{ROOT}.SpladePooling")])
    tiny.write_json(folder / "1_SpladePooling/config.json", {"pooling_strategy": "max"})
    tiny.write_json(folder / "sentence_bert_config.json", {"max_seq_length": 40})
    tiny.write_json(folder / "config_sentence_transformers.json", {"model_type": "SparseEncoder"})
    return folder
