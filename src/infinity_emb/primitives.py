"""Names that code written for the original imports from here."""

from __future__ import annotations

from infinity_emb.errors import CapabilityError as ModelNotDeployedError
from infinity_emb.errors import DimensionsError as MatryoshkaDimError
from infinity_emb.errors import MediaError as AudioCorruption
from infinity_emb.errors import MediaError as ImageCorruption
from infinity_emb.types import (
    ClassifyReturnElement,
    Device,
    Dtype,
    EmbeddingDtype,
    EmbeddingEncodingFormat,
    InferenceEngine,
    Modality,
    PoolingMethod,
    RerankReturnType,
)

__all__ = [
    "AudioCorruption",
    "ClassifyReturnElement",
    "Device",
    "Dtype",
    "EmbeddingDtype",
    "EmbeddingEncodingFormat",
    "ImageCorruption",
    "InferenceEngine",
    "MatryoshkaDimError",
    "Modality",
    "ModelNotDeployedError",
    "PoolingMethod",
    "RerankReturnType",
]
