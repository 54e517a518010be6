"""A body that works for every route that takes one: in the OpenAPI document, and filled in on the docs page."""

from __future__ import annotations

from typing import Any

# By the name of the type that decodes the body.
EXAMPLES: dict[str, dict[str, Any]] = {
    "EmbeddingBody": {"input": ["Hello, world"], "encoding_format": "float"},
    "RerankBody": {"query": "capital of Peru", "documents": ["Tea is hot.", "Lima is the capital of Peru."]},
    "ClassifyBody": {"input": ["I like it"]},
    "CohereEmbedBody": {"texts": ["Hello, world"], "embedding_types": ["float"]},
    "TokenizeBody": {"text": "Hello, world"},
    "DetokenizeBody": {"tokens": [101]},
    "ContextualBody": {"inputs": [["first chunk", "second chunk"]]},
    "MultimodalBody": {"inputs": [{"content": [{"type": "text", "text": "Hello, world"}]}]},
    "TeiEmbedBody": {"inputs": ["Hello, world"]},
    "PredictBody": {"inputs": "I like it"},
    "DoorBody": {"inputs": "Hello, world"},
    "VertexBody": {"instances": [{"inputs": "Hello, world"}]},
    "SimilarityBody": {"inputs": {"source_sentence": "hot tea", "sentences": ["a warm drink", "a cold stone"]}},
    "TeiTokenizeBody": {"inputs": "Hello, world"},
    "TeiDecodeBody": {"ids": [101]},
}
