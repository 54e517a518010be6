"""This project in process, through its pipeline."""

from __future__ import annotations

from infinity_emb import InfinityPipeline


class Adapter:
    """Vectors of texts."""

    def __init__(self, folder: str, dtype: str = "auto") -> None:
        self._pipeline = InfinityPipeline(folder, dtype=dtype)

    def encode(self, texts: list[str]) -> object:
        return self._pipeline.encode(texts)
