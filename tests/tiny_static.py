"""Tiny static embeddings: the layouts of sentence-transformers and model2vec, without torch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

import tiny
import tiny_tokenizers

if TYPE_CHECKING:
    from pathlib import Path

DIM = 24


def static(
    folder: Path,
    *,
    place: str = "",
    layout: str = "sentence-transformers",
    modules: tuple[str, ...] = ("Normalize",),
    dtype: str = "float32",
    shared: bool = False,
    limit: int | None = None,
    tokenizer: str = "bert",
    **config: object,
) -> Path:
    """A table of token vectors.

    Args:
        folder: Root of the repository.
        place: Folder of the StaticEmbedding module; "." is how model2vec writes the root.
        layout: Names of the tensors; "model2vec" alone has no modules.json.
        modules: That follow.
        dtype: Of the table.
        shared: Tokens share rows and have weights.
        limit: Kept in tokenizer.json.
        tokenizer: Its kind.
        config: Of config.json, for model2vec.
    """
    home = folder / place
    home.mkdir(parents=True, exist_ok=True)
    count = tiny_tokenizers.write(home, tokenizer, 16)["vocab_size"]
    (home / "tokenizer_config.json").unlink()
    truncation = {"direction": "Right", "max_length": limit, "strategy": "LongestFirst", "stride": 0}
    tiny.edit_json(home / "tokenizer.json", truncation=truncation if limit else None)
    random = np.random.default_rng(4)
    table = random.normal(0, 1, (40 if shared else count, DIM))
    tensors = {"embedding.weight" if layout == "sentence-transformers" else "embeddings": table.astype(dtype)}
    if shared:
        tensors["mapping"] = np.arange(count) % 40
        tensors["weights"] = np.linspace(0.1, 2.0, count)
    _save(home / "model.safetensors", tensors)
    if layout == "model2vec":
        tiny.write_json(folder / "config.json", {"model_type": "model2vec", "architectures": ["StaticModel"], **config})
        return folder
    chain = [(place, "StaticEmbedding"), *((f"{n}_{name}", name) for n, name in enumerate(modules, 1))]
    tiny.write_modules(folder, chain)
    return folder


def ids(folder: Path, text: str) -> list[int]:
    """Tokens of a text as model2vec reads them: cut, then without the unknown one."""
    from tokenizers import Tokenizer

    config = json.loads((folder / "config.json").read_text("utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    limit = config.get("max_length", 512)
    if limit is not None:
        text = text[: limit * int(np.median([len(token) for token in tokenizer.get_vocab()]))]
        tokenizer.enable_truncation(limit)
    unknown = tokenizer.token_to_id("[UNK]")
    return [number for number in tokenizer.encode(text, add_special_tokens=False).ids if number != unknown]


def _save(path: Path, tensors: dict) -> None:
    from safetensors.numpy import save_file

    save_file(tensors, path)
