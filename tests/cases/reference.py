"""The reference libraries on a checkpoint; what they warn about while loading is not ours to judge."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path


def encode(folder: Path, texts: list[str], *, prompt_name: str | None = None) -> np.ndarray:
    """Vectors of sentence-transformers, one text at a time, so that no padding is involved."""
    return _encode(folder, tuple(texts), prompt_name)


@functools.cache
def _encode(folder: Path, texts: tuple[str, ...], prompt_name: str | None) -> np.ndarray:
    import sentence_transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
        return np.stack([model.encode(text, show_progress_bar=False, prompt_name=prompt_name) for text in texts])


def pair_logits(folder: Path, query: str, documents: list[str], max_length: int) -> np.ndarray:
    """Logits of transformers for a query with each document, the longer one cut first."""
    import torch

    tokenizer, model = _scorer(folder)
    found = []
    for document in documents:  # as a list of one pair: given alone, an empty document would make it no pair at all
        inputs = tokenizer([[query, document]], truncation="longest_first", max_length=max_length, return_tensors="pt")
        with torch.inference_mode():
            found.append(float(model(**inputs).logits[0, 0]))
    return np.array(found)


def label_scores(folder: Path, texts: list[str], max_length: int, function: str = "default") -> list[dict[str, float]]:
    """Label → score of transformers' pipeline, one text at a time; "none" gives logits."""
    import transformers

    tokenizer, model = _scorer(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = transformers.pipeline("text-classification", model=model, tokenizer=tokenizer, device="cpu")
        options = {"top_k": None, "truncation": True, "max_length": max_length}
        if function != "default":
            options["function_to_apply"] = function
        return [{row["label"]: row["score"] for row in pipe([text], **options)[0]} for text in texts]


def states_mean(folder: Path, ids: list[int]) -> np.ndarray:
    """Unit-length mean of the token states for exactly these ids."""
    import torch
    import transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.inference_mode():
        mean = model(torch.tensor([ids])).last_hidden_state[0].mean(dim=0).numpy()
    return mean / np.linalg.norm(mean)


def _scorer(folder: Path):
    import transformers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        return tokenizer, transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
