"""sentence-transformers with its torch, ONNX or OpenVINO backend, batches of 32 as is its default."""

from __future__ import annotations

import torch
from sentence_transformers import SentenceTransformer


class Adapter:
    """Vectors of texts."""

    def __init__(self, folder: str, backend: str = "torch", dtype: str = "float32", int8: bool = False) -> None:
        settings: dict = {"torch_dtype": getattr(torch, dtype)}
        if backend == "openvino":
            settings = {"ov_config": {"INFERENCE_PRECISION_HINT": {"float32": "f32", "bfloat16": "bf16"}[dtype]}}
        if backend == "onnx":
            settings = {"file_name": "onnx/model_quint8_avx2.onnx" if int8 else "onnx/model.onnx"}
        self._model = SentenceTransformer(folder, device="cpu", backend=backend, model_kwargs=settings)

    def encode(self, texts: list[str]) -> object:
        return self._model.encode(texts, show_progress_bar=False, normalize_embeddings=True)
