"""fastembed with the exported ONNX file, batches of 32 (its default of 256 is slower on a CPU and needs gigabytes)."""

from __future__ import annotations

import numpy as np
from fastembed import TextEmbedding
from fastembed.common.model_description import ModelSource, PoolingType


class Adapter:
    """Vectors of texts."""

    def __init__(self, folder: str) -> None:
        TextEmbedding.add_custom_model(
            model="bench",
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf="bench/bench"),
            dim=384,
            model_file="onnx/model.onnx",
        )
        self._model = TextEmbedding("bench", specific_model_path=folder)

    def encode(self, texts: list[str]) -> object:
        return np.stack(list(self._model.embed(texts, batch_size=32)))
