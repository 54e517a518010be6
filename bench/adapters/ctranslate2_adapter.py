"""CTranslate2's encoder with the model's tokenizer; mean and length as the repository says."""

from __future__ import annotations

import os
from pathlib import Path

import ctranslate2
import numpy as np
from tokenizers import Tokenizer

_MAX_TOKENS = 256


class Adapter:
    """Vectors of texts."""

    def __init__(self, folder: str, compute_type: str = "float32") -> None:
        threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        self._encoder = ctranslate2.Encoder(folder, device="cpu", compute_type=compute_type, intra_threads=threads)
        self._tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_MAX_TOKENS)

    def encode(self, texts: list[str]) -> object:
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        hidden = np.asarray(self._encoder.forward_batch(ids).last_hidden_state)
        lengths = np.array([len(one) for one in ids])
        inside = np.arange(hidden.shape[1]) < lengths[:, None]
        means = (hidden * inside[:, :, None]).sum(axis=1) / lengths[:, None]
        return means / np.linalg.norm(means, axis=1, keepdims=True)
